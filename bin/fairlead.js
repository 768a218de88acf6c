#!/usr/bin/env node
// Plain ES2020, so that an old Node gets as far as the message below; CommonJS, which starts sooner than modules do.
const major = Number(process.versions.node.split(".")[0]);
if (major >= 22) {
  require("../dist/main.cjs");
} else {
  startOnNewerNode();
}

/** In a checkout, the development dependencies bring a Node that is new enough; elsewhere the person is told. */
function startOnNewerNode() {
  const { existsSync } = require("node:fs");
  const { join } = require("node:path");
  const name = process.platform === "win32" ? "node.cmd" : "node";
  const brought = join(__dirname, "..", "node_modules", ".bin", name);
  if (!existsSync(brought)) {
    process.stderr.write(
      `fairlead needs Node 22.12 or newer, this is ${process.versions.node}. Install one from https://nodejs.org and try again.\n`,
    );
    process.exit(1);
  }
  const { spawn } = require("node:child_process");
  const child = spawn(brought, process.argv.slice(1), { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code) => process.exit(code ?? 1));
}
