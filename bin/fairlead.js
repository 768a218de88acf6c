#!/usr/bin/env node
// ES2015 and names of modules without a prefix, so that an old Node gets as far as the message below; CommonJS, which
// starts sooner than modules do.
const neededMajor = 22;
const neededMinor = 12;

if (isNewEnough(process.versions.node)) {
  startProgram();
} else {
  startOnNewerNode();
}

function isNewEnough(version) {
  const numbers = version.split(".").map(Number);
  return numbers[0] > neededMajor || (numbers[0] === neededMajor && numbers[1] >= neededMinor);
}

function startProgram() {
  try {
    require("../dist/main.cjs");
  } catch (error) {
    const missing = whatIsMissing();
    if (missing === undefined) throw error;
    fail(missing);
  }
}

function whatIsMissing() {
  const fs = require("fs");
  const path = require("path");
  const root = path.join(__dirname, "..");
  const main = path.join(root, "dist", "main.cjs");
  if (fs.existsSync(main)) return undefined;
  if (!fs.existsSync(path.join(root, "scripts", "build.ts")))
    return `fairlead is not complete: ${main} is missing. Install it again.`;
  const hasTools = fs.existsSync(path.join(root, "node_modules", "rolldown"));
  return `fairlead is not built: ${main} is missing. Run "${hasTools ? "npm run build" : "npm ci"}" in ${root}.`;
}

/** In a checkout the development dependencies bring a Node that is new enough. */
function startOnNewerNode() {
  const brought = findBroughtNode();
  if (brought === undefined) {
    fail(
      `fairlead needs Node ${neededMajor}.${neededMinor} or newer; this is Node ${process.versions.node} (${process.execPath}).\n` +
        "Install a newer one from https://nodejs.org or with a version manager (nvm install --lts), and try again.",
    );
  }
  const child = require("child_process").spawn(brought, process.argv.slice(1), { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => fail(`fairlead could not start ${brought}: ${error.message}`));
  child.on("exit", (code) => process.exit(code === null ? 1 : code));
}

function findBroughtNode() {
  const fs = require("fs");
  const path = require("path");
  const isWindows = process.platform === "win32";
  const name = `node-${isWindows ? "win" : process.platform}-${process.arch}`;
  const brought = path.join(__dirname, "..", "node_modules", name, "bin", isWindows ? "node.exe" : "node");
  if (!fs.existsSync(brought)) return undefined;
  // This Node is too old: starting it again would never end.
  return fs.realpathSync(brought) === fs.realpathSync(process.execPath) ? undefined : brought;
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
