import { enableCompileCache, flushCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

/** When the compiled code of what was loaded so far is written: a client may kill us without warning. */
const cacheFlushDelayMs = 250;

const [command = "help", ...args] = process.argv.slice(2);

if (process.env["NODE_DISABLE_COMPILE_CACHE"] === undefined) {
  enableCompileCache(join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "fairlead", "code"));
  setTimeout(flushCompileCache, cacheFlushDelayMs).unref();
}

// Editors log in by what they start as an agent, with the method's words behind it: fairlead acp setup.
if (command === "acp" && args[0] === "setup") {
  const { runCommand } = await import("./commands.ts");
  process.exitCode = await runCommand("setup", args.slice(1));
} else if (command === "acp") {
  const { serveEditor } = await import("./acp.ts");
  await serveEditor(args);
} else {
  const { runCommand } = await import("./commands.ts");
  process.exitCode = await runCommand(command, args);
}
