// Notes each path that a program gives to the file system, for tests that put something else in its place.
const fs = require("node:fs");
const { join } = require("node:path");

const list = join(process.env.HOME, "paths.txt");
const append = fs.appendFileSync;
const seen = new Set();

function record(path) {
  if (typeof path !== "string" || seen.has(path)) return;
  seen.add(path);
  append(list, `${path}\n`);
}

for (const place of [fs, fs.promises]) {
  for (const name of Object.keys(place)) {
    const original = place[name];
    if (!/^(open|readFile|l?stat|exists|createReadStream|createWriteStream)(Sync)?$/.test(name)) continue;
    place[name] = (path, ...rest) => {
      record(path);
      return original(path, ...rest);
    };
  }
}
