import { toSlashes } from "../base/files/paths.ts";
import { expandHome } from "./pattern.ts";
import type { PermissionConfig, ToolsConfig } from "./permission-config.ts";
import type { Rule } from "./rule.ts";

/** Tools that change files, under the permission `edit`. */
const editTools = new Set(["edit", "write", "multiedit", "apply_patch", "patch", "rename_symbol"]);

/** Returns the permission that a tool needs. */
export function getToolPermission(tool: string): string {
  return editTools.has(tool) ? "edit" : tool;
}

/**
 * Converts the configuration key `permission`: an action for everything, or for each permission an action or actions by
 * pattern. Keeps the order.
 */
export function parseRules(config: PermissionConfig, home: string, separator?: string): Rule[] {
  if (typeof config === "string") return [{ permission: "*", pattern: "*", action: config }];
  return Object.entries(config).flatMap(([name, value]) => {
    const patterns = typeof value === "string" ? { "*": value } : value;
    return Object.entries(patterns).map(([pattern, action]) => {
      const permission = getToolPermission(name);
      const expanded = expandHome(pattern, home, separator);
      const isPath = pathPermissions.has(permission);
      return { permission, pattern: isPath ? toSlashes(expanded, separator) : expanded, action };
    });
  });
}

/** Permissions whose patterns are paths, which rules compare with `/` as separator. */
const pathPermissions: ReadonlySet<string> = new Set(["read", "edit", "list", "external_directory"]);

/** Converts the older key `tools`, which switches tools on and off by name. */
export function parseToolSwitches(config: ToolsConfig): Rule[] {
  return Object.entries(config).map(([tool, on]) => {
    return { permission: getToolPermission(tool), pattern: "*", action: on ? "allow" : "deny" };
  });
}
