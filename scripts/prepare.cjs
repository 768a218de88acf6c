// npm runs this after it installed a checkout's dependencies, before it packs, and when it installs from git: it builds
// the bundle. ES2015, because it may start on an old Node.
const { spawnSync } = require("child_process");
const fs = require("fs");
const path = require("path");

const modules = path.join(__dirname, "..", "node_modules");

if (fs.existsSync(path.join(modules, "rolldown"))) {
  build(findBroughtNode() || process.execPath);
} else if (["pack", "publish"].includes(process.env.npm_command)) {
  fail('the bundle cannot be built without the development dependencies. Run "npm ci" first.');
} else {
  console.error(
    'fairlead: nothing was built: the development dependencies are missing; "npm ci" installs them.',
  );
}

/** The Node of the development dependencies, linked where npm's scripts find it: npm 10 removes the link again. */
function findBroughtNode() {
  const isWindows = process.platform === "win32";
  const name = `node-${isWindows ? "win" : process.platform}-${process.arch}`;
  const brought = path.join(modules, name, "bin", isWindows ? "node.exe" : "node");
  if (!fs.existsSync(brought)) return undefined;
  const link = path.join(modules, ".bin", "node");
  if (!isWindows && !fs.existsSync(link)) {
    fs.mkdirSync(path.dirname(link), { recursive: true });
    fs.symlinkSync(path.join("..", name, "bin", "node"), link);
  }
  return brought;
}

function build(node) {
  const script = path.join(__dirname, "build.ts");
  const { status, error } = spawnSync(node, [script], { cwd: path.dirname(modules), stdio: "inherit" });
  if (error !== undefined) fail(`the build could not start: ${error.message}`);
  process.exitCode = status === null ? 1 : status;
}

function fail(message) {
  console.error(`fairlead: ${message}`);
  process.exitCode = 1;
}
