import { isRecord } from "../../base/text/record.ts";
import type { Project } from "../../conversation/project.ts";
import { describeNearMiss, permissionNames } from "../../permission/permission-names.ts";
import type { Finding } from "./finding.ts";

/** Reports permissions for tools that do not exist. Near misses are problems of the configuration already. */
export async function permissionFindings(project: Project): Promise<Finding[]> {
  const { permission, tools, agent = {}, mcp = {} } = project.config;
  const settings = [permission, tools, ...Object.values(agent).flatMap((one) => [one.permission, one.tools])];
  const names = new Set(settings.flatMap((setting) => Object.keys(isRecord(setting) ? setting : {})));
  const servers = Object.keys(mcp);
  const unknown = [...names].filter(
    (name) =>
      /^[\w-]+$/.test(name) &&
      !permissionNames.includes(name) &&
      describeNearMiss(name) === undefined &&
      !servers.some((server) => name.startsWith(`${server}_`)),
  );
  if (unknown.length === 0) return [];
  const known = new Set((await project.tools()).map(({ name }) => name));
  return unknown
    .filter((name) => !known.has(name))
    .map((name) => ({
      what: "Permission",
      found: `${name}: no tool has this name`,
      note: "Correct the name, or remove it. Tools of MCP servers are named SERVER_TOOL.",
    }));
}
