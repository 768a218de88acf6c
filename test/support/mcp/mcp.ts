import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Editor } from "../editor/editor.ts";

const require = createRequire(import.meta.url);

/** A configured server that runs on this Node. */
export function localServer(script: string, ...args: string[]) {
  return { type: "local", command: [process.execPath, script, ...args] };
}

/** The MCP project's published reference servers. */
export const everything = () =>
  localServer(
    resolveProgram(require.resolve("@modelcontextprotocol/server-everything/package.json")),
    "stdio",
  );
export const filesystem = (...folders: string[]) =>
  localServer(
    resolveProgram(require.resolve("@modelcontextprotocol/server-filesystem/package.json")),
    ...folders,
  );
export const memory = () =>
  localServer(resolveProgram(require.resolve("@modelcontextprotocol/server-memory/package.json")));

/** Waits for the prompts of {@link everything}: where it starts slowly, the session's first prompt does not wait for it. */
export const waitForEverything = (editor: Editor, sessionId: string, name = "everything") =>
  editor.waitFor(
    sessionId,
    (update) =>
      update.sessionUpdate === "available_commands_update" &&
      update.availableCommands.some((command) => command.name.startsWith(`${name}:`)),
    slowestStartMs,
  );

const slowestStartMs = 25_000;

/** A server with one fault; see the program. */
export const faulty = (fault: string, ...more: string[]) =>
  localServer(fileURLToPath(new URL("faulty-mcp-program.ts", import.meta.url)), fault, ...more);

/** A server for the protocol of 2026-07-28; see the program. */
export const modern = (memory: string, ...more: string[]) =>
  localServer(fileURLToPath(new URL("modern-program.ts", import.meta.url)), memory, ...more);

function resolveProgram(description: string): string {
  return join(dirname(description), "dist/index.js");
}

/** Five servers with 58 tools together. */
export const manyTools = () => {
  const program = fileURLToPath(new URL("many-tools-program.ts", import.meta.url));
  const names = ["browser", "files", "github", "postgres", "slack"];
  return Object.fromEntries(names.map((name) => [name, localServer(program, name)]));
};
