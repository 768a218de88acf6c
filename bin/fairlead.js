#!/usr/bin/env node
// Plain ES2020 without static imports, so that an old Node gets as far as the message below.
const major = Number(process.versions.node.split(".")[0]);
if (major >= 22) {
  void import("../dist/main.js");
} else {
  void startOnNewerNode();
}

/** In a checkout, the development dependencies bring a Node that is new enough; elsewhere the person is told. */
async function startOnNewerNode() {
  const { existsSync } = await import("node:fs");
  const { fileURLToPath } = await import("node:url");
  const name = process.platform === "win32" ? "node.cmd" : "node";
  const brought = fileURLToPath(new URL(`../node_modules/.bin/${name}`, import.meta.url));
  if (!existsSync(brought)) {
    process.stderr.write(
      `fairlead needs Node 22.12 or newer, this is ${process.versions.node}. Install one from https://nodejs.org and try again.\n`,
    );
    process.exit(1);
  }
  const { spawn } = await import("node:child_process");
  const child = spawn(brought, process.argv.slice(1), { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code) => process.exit(code ?? 1));
}
