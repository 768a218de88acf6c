import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";

const serverSchema = z.strictObject({
  package: z.string(),
  version: z.string(),
  args: z.array(z.string()).default([]),
  /** Keys are invented: some servers need them to start, and no service is called with them. */
  environment: z.record(z.string(), z.string()).default({}),
  /** A call that changes nothing. Without network and keys, some servers can only return an error. */
  call: z.strictObject({
    tool: z.string(),
    arguments: z.record(z.string(), z.unknown()).default({}),
    /** Text in the result; absent if it depends on the network. */
    result: z.string().optional(),
  }),
});
/** A server from npm and one call of it. */
export type ListedServer = z.infer<typeof serverSchema>;

/** The folder for installed servers. */
export const serversFolder =
  process.env["FAIRLEAD_MCP_SERVERS"] ?? join(homedir(), ".cache", "fairlead-mcp-servers");

export const listedServers: readonly ListedServer[] = z
  .array(serverSchema)
  .parse(JSON.parse(readFileSync(join(import.meta.dirname, "servers.json"), "utf8")));

const packageSchema = z.object({
  version: z.string(),
  bin: z.union([z.string(), z.record(z.string(), z.string())]),
});

/** Returns the server's program; undefined if this version is not installed. */
export function findServerProgram(server: ListedServer): string | undefined {
  const folder = join(serversFolder, "node_modules", server.package);
  try {
    const { version, bin } = packageSchema.parse(
      JSON.parse(readFileSync(join(folder, "package.json"), "utf8")),
    );
    const [program] = typeof bin === "string" ? [bin] : Object.values(bin);
    return version === server.version && program !== undefined ? join(folder, program) : undefined;
  } catch {
    return undefined;
  }
}
