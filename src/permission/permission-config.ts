import { z } from "zod";
import { type Action, actionSchema } from "./rule.ts";

/** Maximum length of a pattern in characters, which bounds the time of a match. */
const patternLimit = 1000;

const patternSchema = z.string().max(patternLimit);

const patternsSchema = z
  .union([actionSchema, z.record(patternSchema, actionSchema)])
  .describe("An action for everything, or actions by pattern; the last pattern that matches wins.");

/** The key `permission` of the configuration and of agents. */
export const permissionSchema = z
  .union([actionSchema, z.record(patternSchema, patternsSchema)])
  .describe("What may be done: allow, ask or deny, for all or by permission name (read, edit, bash, …).");
export type PermissionConfig = z.infer<typeof permissionSchema>;

/** The older key `tools`. */
export const toolsSchema = z
  .record(z.string(), z.boolean())
  .describe("Old form of permission: true allows a tool, false denies it.");
export type ToolsConfig = z.infer<typeof toolsSchema>;

/**
 * Shortens a pattern that is too long. The result matches more, and its action is never "allow". Returns
 * undefined if the length is valid. `problem` is for the user.
 */
export function repairLongPattern(
  pattern: string,
  value: unknown,
): { pattern: string; action: Action; problem: string } | undefined {
  if (pattern.length <= patternLimit) return undefined;
  const action = value === "deny" ? "deny" : "ask";
  const problem = `the pattern is longer than ${patternLimit} characters; until it is shorter, the action for everything with the same beginning is ${action}`;
  return { pattern: `${pattern.slice(0, patternLimit - 1)}*`, action, problem };
}
