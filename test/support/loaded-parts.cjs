// Loaded into the program before it: tells on stderr which files it had loaded when the first session was answered.
const { writeSync } = require("node:fs");
const Module = require("node:module");

const load = Module._extensions[".js"];
const files = [];
Module._extensions[".js"] = (module, path) => {
  files.push(path);
  return load(module, path);
};

const write = process.stdout.write;
process.stdout.write = function (text, ...rest) {
  if (text.includes('"sessionId":"ses_')) writeSync(2, `loaded ${JSON.stringify(files.splice(0))}\n`);
  return write.call(this, text, ...rest);
};
