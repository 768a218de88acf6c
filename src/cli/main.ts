import { join } from "node:path";
import { homeFolder, userFolders } from "../config/paths.ts";
import { cacheCompiledCode } from "./compile-cache.ts";

const [command, ...args] = process.argv.slice(2);
/** To log in, editors append `setup` to their server command: `fairlead acp setup`. */
const words = command === "acp" && args[0] === "setup" ? args : process.argv.slice(2);

// Without a listener Node opens a debugger port, through which any local program could read the keys.
process.on("SIGUSR1", () => {});

if (process.env["NODE_DISABLE_COMPILE_CACHE"] === undefined) {
  const { env, platform } = process;
  const home = homeFolder({ env, platform });
  cacheCompiledCode(join(userFolders({ env, platform, home }).cache, "code"));
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
