import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const resolveFrom = createRequire(import.meta.url);

/** A server of the configuration that this Node runs. */
export function localServer(script: string, ...args: string[]) {
  return { type: "local", command: [process.execPath, script, ...args] };
}

/** The MCP project's own reference servers, as they are published. */
export const everything = () => localServer(packaged("server-everything"), "stdio");
export const filesystem = (...folders: string[]) => localServer(packaged("server-filesystem"), ...folders);
export const memory = () => localServer(packaged("server-memory"));

/** A server that does one thing wrong; see the program. */
export const faulty = (fault: string, ...more: string[]) =>
  localServer(fileURLToPath(new URL("faulty-mcp-program.ts", import.meta.url)), fault, ...more);

function packaged(name: string): string {
  const description = resolveFrom.resolve(`@modelcontextprotocol/${name}/package.json`);
  return join(dirname(description), "dist/index.js");
}
