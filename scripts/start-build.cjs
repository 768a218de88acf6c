// Builds the bundle. npm runs this after it installed a checkout's dependencies, before it packs, and when it installs
// from git; for the last two, Yarn runs only "prepack". Also decides which Node the npm scripts of the checkout run on:
// the installed one if it can run them, else the one that the development dependencies bring. ES2015, because it may
// start on an old Node.
const { spawnSync } = require("child_process");
const fs = require("fs");
const path = require("path");

const modules = path.join(__dirname, "..", "node_modules");
const { npm_lifecycle_event: script, npm_command: command, npm_config_user_agent: agent } = process.env;
const isWindows = process.platform === "win32";
const installed = findInstalledNode();
const brought = findBroughtNode();
const node = canRunTypeScript(installed && installed.version) ? installed.path : brought;

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
} else if (node === undefined) {
  console.error(
    `fairlead: nothing was built: the build needs Node 22.18 or newer, and this is Node ${process.versions.node}. ` +
      'Install the version in .nvmrc, and run "npm ci" again.',
  );
  process.exitCode = 1;
} else {
  if (installed !== undefined) linkNode();
  build(node);
}

/** npm installs it only on versions of Node that it supports. */
function hasNativePart() {
  const folder = path.join(modules, "@rolldown");
  return fs.existsSync(folder) && fs.readdirSync(folder).some((name) => name.startsWith("binding-"));
}

/** Returns the Node outside of the checkout that npm, or else this script, runs on. */
function findInstalledNode() {
  const isOutside = (file) => file && fs.existsSync(file) && !isInside(fs.realpathSync(file));
  const npmNode = process.env.npm_node_execpath;
  if (npmNode !== process.execPath && isOutside(npmNode)) {
    const printed = spawnSync(npmNode, ["--version"], { encoding: "utf8" }).stdout || "";
    return { path: npmNode, version: printed.trim().replace("v", "") };
  }
  return isOutside(process.execPath) ? { path: process.execPath, version: process.versions.node } : undefined;
}

function isInside(file) {
  return file.startsWith(fs.realpathSync(path.dirname(modules)) + path.sep);
}

/** Returns whether this version runs the TypeScript of the scripts and of the tests without an option. */
function canRunTypeScript(version) {
  const numbers = (version || "0").split(".").map(Number);
  return numbers[0] === 22 ? numbers[1] >= 18 : numbers[0] > 23;
}

function findBroughtNode() {
  const name = `node-${isWindows ? "win" : process.platform}-${process.arch}`;
  const file = path.join(modules, name, "bin", isWindows ? "node.exe" : "node");
  return fs.existsSync(file) ? file : undefined;
}

/** Puts the brought Node first on the path of npm's scripts if it is needed there, else npm's own Node. */
function linkNode() {
  const bin = path.join(modules, ".bin");
  if (node !== brought) {
    const linked = fs.existsSync(bin) ? fs.readdirSync(bin) : [];
    for (const name of ["node", "node.ps1"].filter((name) => linked.includes(name)))
      fs.unlinkSync(path.join(bin, name));
    // It may run this script: cmd.exe reads on in it afterwards, and fails if it is gone.
    if (linked.includes("node.cmd"))
      fs.writeFileSync(path.join(bin, "node.cmd"), '@"%npm_node_execpath%" %*\r\n');
  } else if (!isWindows && !fs.existsSync(path.join(bin, "node"))) {
    fs.mkdirSync(bin, { recursive: true });
    fs.symlinkSync(path.relative(bin, brought), path.join(bin, "node"));
  }
}

function build(node) {
  const script = path.join(__dirname, "build.ts");
  const { status, error } = spawnSync(node, [script], { cwd: path.dirname(modules), stdio: "inherit" });
  if (error !== undefined) console.error(`fairlead: the build could not start: ${error.message}`);
  process.exitCode = status === null ? 1 : status;
}
