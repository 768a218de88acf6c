import type { App } from "../../app.ts";
import type { Project } from "../../conversation/project.ts";
import type { Home } from "../../config/paths.ts";
import { otherPrograms, readServersOf } from "../mcp/other-programs.ts";
import { connectServers, type ServerRow } from "../mcp/connect-servers.ts";
import type { Finding } from "./finding.ts";

/** Names the servers of other programs that the configuration lacks. They are never started. */
export async function otherServerFindings(project: Project, home: Home): Promise<Finding[]> {
  const known = new Set(Object.keys(project.config.mcp ?? {}));
  const found = otherPrograms.map(async (program): Promise<Finding[]> => {
    const servers = await readServersOf(program, home).catch(() => undefined);
    const names = (servers ?? []).map(({ name }) => name).filter((name) => !known.has(name));
    if (names.length === 0) return [];
    const note = `To use them here: fairlead mcp add --from ${program.id}`;
    return [{ what: "MCP", found: `${program.name} has: ${names.join(", ")}`, note }];
  });
  return (await Promise.all(found)).flat();
}

/** Connects to the configured MCP servers. */
export async function mcpFindings(app: App, project: Project, isOffline: boolean): Promise<Finding[]> {
  const names = Object.keys(project.config.mcp ?? {});
  if (names.length === 0) return [];
  if (isOffline) return [{ what: "MCP", found: `${names.join(", ")} (not started)` }];
  const { rows, problems } = await connectServers(app, project);
  return [
    ...rows.map((row) => ({ what: "MCP", ...describe(row) })),
    ...problems.map((problem) => ({ what: "MCP", found: "a problem", todo: problem })),
  ];
}

function describe({ name, state, reason, tools }: ServerRow): Omit<Finding, "what"> {
  switch (state) {
    case "connected":
      return { found: `${name}: connected, ${tools.length} ${tools.length === 1 ? "tool" : "tools"}` };
    case "disabled":
      return { found: `${name}: disabled in the configuration` };
    case "needs authorization":
      return { found: `${name}: not authorized`, note: `Authorize it: ${reason ?? ""}` };
    case "failed":
      return { found: `${name}: does not connect`, todo: reason ?? "It gave no reason." };
  }
}
