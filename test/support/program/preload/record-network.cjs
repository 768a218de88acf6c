// Loaded into the program before it: appends each connection and each server that listens to the file in
// RECORDED_NETWORK, as one line.
const { appendFileSync } = require("node:fs");
const { Server, Socket } = require("node:net");

const record = (line) => appendFileSync(process.env.RECORDED_NETWORK, `${line}\n`);

/** Returns host and port, or the path of a socket that no other machine reaches. */
function describe([first, second]) {
  const target = Array.isArray(first) ? first[0] : first;
  if (typeof target === "object" && target !== null)
    return target.path ? `path ${target.path}` : `${target.host ?? "localhost"}:${target.port}`;
  return typeof target === "string"
    ? `path ${target}`
    : `${typeof second === "string" ? second : "localhost"}:${target}`;
}

for (const [type, method, word] of [
  [Socket, "connect", "connect"],
  [Server, "listen", "listen"],
]) {
  const original = type.prototype[method];
  type.prototype[method] = function (...args) {
    record(`${word} ${describe(args)}`);
    return original.apply(this, args);
  };
}
