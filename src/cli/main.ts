import { enableCompileCache, flushCompileCache } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { makeFolderNow } from "../base/make-folder.ts";

/** When the compiled code of what was loaded so far is written: a client may kill us without warning. */
const cacheFlushDelayMs = 250;

const [command, ...args] = process.argv.slice(2);
/** Editors log in with `setup` behind the arguments that they start the server with. */
const words = command === "acp" && args[0] === "setup" ? args : process.argv.slice(2);

// Without a listener Node opens a port for debuggers, through which any program of the machine could read our keys.
process.on("SIGUSR1", () => {});

if (process.env["NODE_DISABLE_COMPILE_CACHE"] === undefined) {
  keepCompiledCode(join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "fairlead", "code"));
}

const isServing = words[0] === "acp" && !args.some((arg) => arg === "--help" || arg === "-h");
void (isServing ? serve() : runOnce());

/** Where nothing can be kept the program only starts slower, which `fairlead doctor` tells. */
function keepCompiledCode(folder: string): void {
  try {
    makeFolderNow(folder, 0o700);
  } catch {
    return;
  }
  enableCompileCache(folder);
  setTimeout(flushCompileCache, cacheFlushDelayMs).unref();
}

async function serve(): Promise<void> {
  const { serveEditor } = await import("./acp.ts");
  await serveEditor(args);
}

async function runOnce(): Promise<void> {
  const { runCommand } = await import("./commands.ts");
  process.exitCode = await runCommand(words);
}
