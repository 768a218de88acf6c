// Builds the bundle. npm runs this after it installed a checkout's dependencies, before it packs, and when it installs
// from git. ES2015, because it may start on an old Node.
const { spawnSync } = require("child_process");
const fs = require("fs");
const path = require("path");

const modules = path.join(__dirname, "..", "node_modules");
const { npm_lifecycle_event: script, npm_command: command, npm_config_user_agent: agent } = process.env;

if (!fs.existsSync(path.join(modules, "rolldown"))) {
  const isInstall = script === "prepare" && !["pack", "publish"].includes(command);
  console.error('fairlead: nothing was built: the development dependencies are missing; run "npm ci".');
  process.exitCode = isInstall ? 0 : 1;
} else if (!hasNativePart()) {
  const found = /node\/v([\d.]+)/.exec(agent);
  console.error(
    `fairlead: nothing was built: npm leaves out native parts of the build on Node ${found ? found[1] : process.versions.node}. ` +
      'Install Node 22.12 or newer (20.19 of the 20s), and run "npm ci" again.',
  );
  process.exitCode = 1;
} else {
  build(findBroughtNode() || process.execPath);
}

/** npm installs it only on versions of Node that it supports. */
function hasNativePart() {
  const folder = path.join(modules, "@rolldown");
  return fs.existsSync(folder) && fs.readdirSync(folder).some((name) => name.startsWith("binding-"));
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
  if (error !== undefined) console.error(`fairlead: the build could not start: ${error.message}`);
  process.exitCode = status === null ? 1 : status;
}
