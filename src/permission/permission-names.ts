import { isRecord } from "../base/text/record.ts";
import { nearest } from "../base/text/nearest.ts";

/** The permissions of built-in tools, and the names of tools that mean them. */
export const permissionNames: readonly string[] = [
  "read edit write multiedit apply_patch patch rename_symbol",
  "bash job glob grep list lsp webfetch websearch codesearch",
  "task skill todoread todowrite question plan_enter plan_exit",
  "tool_search call_tool list_mcp_resources read_mcp_resource",
  "external_directory doom_loop sandbox connect",
].flatMap((names) => names.split(" "));

/** Shorter names have too many neighbors. */
const shortestName = 3;
/** From this length on, two wrong letters are a near miss too. */
const longName = 7;

/**
 * Returns a message about a permission name that is close to a known one. Undefined for known names, patterns, and names
 * that may be those of other tools.
 */
export function describeNearMiss(name: string): string | undefined {
  const isPossible = name.length >= shortestName && /^[\w-]+$/.test(name);
  if (!isPossible || permissionNames.includes(name)) return undefined;
  const near = nearest(name, permissionNames, name.length < longName ? 1 : 2);
  return near === undefined ? undefined : `"${name}" is not a permission; did you mean "${near}"?`;
}

/** Returns the near misses among the keys `permission` and `tools`. */
export function findNearMisses(config: {
  readonly permission?: unknown;
  readonly tools?: unknown;
}): { path: string[]; message: string }[] {
  return (["permission", "tools"] as const).flatMap((key) => {
    const value = config[key];
    return Object.keys(isRecord(value) ? value : {}).flatMap((name) => {
      const message = describeNearMiss(name);
      return message === undefined ? [] : [{ path: [key, name], message }];
    });
  });
}
