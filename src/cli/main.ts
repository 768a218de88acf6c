import { join } from "node:path";
import { homeFolder, userFolders } from "../config/paths.ts";
import { cacheCompiledCode } from "./compile-cache.ts";

const [command, ...args] = process.argv.slice(2);
/** Editors log in with `setup` behind the arguments that they start the server with. */
const words = command === "acp" && args[0] === "setup" ? args : process.argv.slice(2);

// Without a listener Node opens a port for debuggers, through which any program of the machine could read our keys.
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
