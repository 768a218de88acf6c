import { enableCompileCache, flushCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

/** When the compiled code of what was loaded so far is written: a client may kill us without warning. */
const cacheFlushDelayMs = 250;

const [command, ...args] = process.argv.slice(2);
/** Editors log in with `setup` behind the arguments that they start the server with. */
const words = command === "acp" && args[0] === "setup" ? args : process.argv.slice(2);

if (process.env["NODE_DISABLE_COMPILE_CACHE"] === undefined) {
  enableCompileCache(join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "fairlead", "code"));
  setTimeout(flushCompileCache, cacheFlushDelayMs).unref();
}

const isServing = words[0] === "acp" && !args.some((arg) => arg === "--help" || arg === "-h");
void (isServing ? serve() : runOnce());

async function serve(): Promise<void> {
  const { serveEditor } = await import("./acp.ts");
  await serveEditor(args);
}

async function runOnce(): Promise<void> {
  const { runCommand } = await import("./commands.ts");
  process.exitCode = await runCommand(words);
}
