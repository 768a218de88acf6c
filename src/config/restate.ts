import { getToolPermission } from "../permission/parse-rules.ts";
import { matches } from "../permission/pattern.ts";
import type { PermissionConfig } from "../permission/permission-config.ts";
import type { AgentConfig, Config } from "./schema.ts";

/**
 * Appends the user's denials to the rules of an untrusted project, because the last rule wins
 * and a project's "ask" must not override a "deny".
 */
export function restateDenials(own: Config, merged: PermissionConfig): PermissionConfig {
  const ownRules = mergeToolSwitches(own);
  if (ownRules === "deny") return "deny";
  if (typeof ownRules === "string" || Object.keys(ownRules).length === 0) return merged;
  const restated: Exclude<PermissionConfig, string> =
    typeof merged === "string" ? { "*": merged } : { ...merged };
  for (const [permission, rules] of Object.entries(ownRules)) {
    const denied = typeof rules === "string" ? rules === "deny" : Object.values(rules).includes("deny");
    if (!denied) continue;
    const rulesWithDenials = moveDenialsLast(rules, restated[permission]);
    delete restated[permission];
    restated[permission] = rulesWithDenials;
  }
  return restated;
}

/** Adds denials for tools that the older key `tools` switches off, unless `permission` mentions them. */
function mergeToolSwitches({ tools = {}, permission = {} }: Config): PermissionConfig {
  if (typeof permission === "string") return permission;
  const names = Object.keys(permission);
  const off = Object.keys(tools)
    .filter((tool) => tools[tool] === false)
    .map(getToolPermission)
    .filter((denied) => !names.some((name) => matches(name, denied)));
  return { ...Object.fromEntries(off.map((name) => [name, "deny" as const])), ...permission };
}

/**
 * Limits steps to the smaller of the user's and the project's value, and keeps the user's default agent,
 * which may be read-only.
 */
export function restateLimits(own: Config, merged: Config): Config {
  const agents =
    merged.agent && mapValues(merged.agent, (agent, name) => limitSteps(own.agent?.[name], agent));
  const max_steps = minimum(own.max_steps, merged.max_steps);
  const default_agent = own.default_agent ?? merged.default_agent;
  return omitUndefined({ ...merged, agent: agents, max_steps, default_agent });
}

function limitSteps(own: AgentConfig | undefined, merged: AgentConfig): AgentConfig {
  const allowed = own?.steps ?? own?.maxSteps;
  return allowed === undefined ? merged : { ...merged, steps: Math.min(allowed, merged.steps ?? allowed) };
}

function minimum(own: number | undefined, merged: number | undefined): number | undefined {
  return own === undefined ? merged : Math.min(own, merged ?? own);
}

type Rules = Exclude<PermissionConfig, string>[string];

function moveDenialsLast(own: Rules, merged: Rules | undefined): Rules {
  if (typeof own === "string") return own;
  const rules = typeof merged === "object" ? merged : merged === undefined ? {} : { "*": merged };
  const denials = Object.entries(own).filter(([, action]) => action === "deny");
  const others = Object.entries(rules).filter(([pattern]) => !denials.some(([denied]) => denied === pattern));
  return Object.fromEntries([...others, ...denials]);
}

export function mapValues<T, R>(
  record: Record<string, T>,
  map: (value: T, key: string) => R | undefined,
): Record<string, R> {
  const mapped: [string, R][] = [];
  for (const [key, value] of Object.entries(record)) {
    const result = map(value, key);
    if (result !== undefined) mapped.push([key, result]);
  }
  return Object.fromEntries(mapped);
}

export function omitUndefined<T extends object>(value: T): T {
  const result = { ...value };
  for (const key of Object.keys(result)) {
    if (Reflect.get(result, key) === undefined) Reflect.deleteProperty(result, key);
  }
  return result;
}
