import { isAbsolute } from "node:path";
import { getToolPermission } from "../permission/evaluate.ts";
import { matches } from "../permission/pattern.ts";
import type { Action } from "../permission/rule.ts";
import type { AgentConfig, Config, PermissionConfig, ProviderConfig } from "./schema.ts";

/** What a project may set by itself, and the dotted names of what waits for the person's consent. */
export interface UntrustedSettings {
  readonly config: Config;
  readonly withheld: readonly string[];
}

/** Settings that would start a program, load code or send queries somewhere. */
const settingsThatReachOut = ["plugin", "lsp", "search"] as const;

/**
 * Settings that would lift a limit: of costs, of tasks that start tasks, of what can be undone, of what a "no" ends, of
 * tries and waits, of what goes to the model.
 */
function settingsThatLoosen(config: Config): (keyof Config)[] {
  const { max_cost, subagent_depth, snapshot, experimental } = config;
  const { retry, tool_output, subagent_idle_seconds } = config;
  const loosened: [keyof Config, boolean][] = [
    ["max_cost", max_cost !== undefined],
    ["subagent_depth", (subagent_depth ?? 0) > 1],
    ["snapshot", snapshot === false],
    ["experimental", experimental?.continue_loop_on_deny === true],
    ["retry", retry !== undefined],
    ["tool_output", tool_output !== undefined],
    ["subagent_idle_seconds", subagent_idle_seconds !== undefined],
  ];
  return loosened.filter(([, isLoosened]) => isLoosened).map(([key]) => key);
}

const agentKeysOfProjects = new Set([
  "name",
  "description",
  "mode",
  "hidden",
  "prompt",
  "model",
  "variant",
  "temperature",
  "top_p",
  "steps",
  "maxSteps",
  "color",
  "permission",
  "tools",
]);

/** Not what a model costs, nor which one is meant by a known name: by these the person's limits are counted. */
const modelKeysOfProjects = new Set([
  "name",
  "family",
  "limit",
  "reasoning",
  "attachment",
  "tool_call",
  "temperature",
  "modalities",
]);

/** What a person decides for all projects: what is deleted, and which credentials programs get. */
const personalSettings = ["sessions", "environment"] as const;

/** A project's configuration without what no project may say, trusted or not, and the names of that. */
export function withoutPersonal(config: Config): { config: Config; leftOut: readonly string[] } {
  const leftOut = personalSettings.filter((key) => config[key] !== undefined);
  if (leftOut.length === 0) return { config, leftOut };
  const kept = { ...config };
  for (const key of leftOut) delete kept[key];
  return { config: kept, leftOut };
}

/**
 * Leaves out of a project's configuration what would run, load or redirect something or loosen a permission.
 * What remains can describe and tighten only.
 */
export function withholdUntrusted(config: Config): UntrustedSettings {
  const withheld: string[] = [];
  const kept: Config = { ...config };

  for (const key of [...settingsThatReachOut, ...settingsThatLoosen(config)]) {
    if (kept[key] !== undefined) withheld.push(key);
    delete kept[key];
  }
  if (kept.permission !== undefined) {
    kept.permission = restricted(kept.permission, ["ask", "deny"], "permission", withheld);
  }
  if (kept.tools !== undefined) kept.tools = switchedOff(kept.tools, "tools", withheld);
  if (kept.mcp !== undefined) kept.mcp = disabledServers(kept.mcp, withheld);
  if (kept.provider !== undefined) kept.provider = describedProviders(kept.provider, withheld);
  if (kept.agent !== undefined) kept.agent = tightenedAgents(kept.agent, "agent", withheld);
  if (kept.mode !== undefined) kept.mode = tightenedAgents(kept.mode, "mode", withheld);
  if (kept.command !== undefined) kept.command = commandsWithoutShell(kept.command, withheld);
  if (kept.instructions !== undefined) {
    kept.instructions = pathsInside(kept.instructions, "instructions", withheld);
  }
  if (kept.skills?.paths !== undefined) {
    kept.skills = { ...kept.skills, paths: pathsInside(kept.skills.paths, "skills.paths", withheld) };
  }
  return { config: withoutUndefined(kept), withheld };
}

/** Without the models that it chooses: where the person limits costs, one whose price is not known would not be counted. */
export function withholdModels(config: Config): UntrustedSettings {
  const withheld: string[] = [];
  const withoutModel = <T extends { model?: unknown }>(value: T, name: string): T => {
    if (value.model === undefined) return value;
    withheld.push(`${name}.model`);
    return withoutUndefined({ ...value, model: undefined });
  };
  const inEach = <T extends { model?: unknown }>(values: Record<string, T> | undefined, name: string) =>
    values && mapValues(values, (value, key) => withoutModel(value, `${name}.${key}`));
  for (const key of ["model", "small_model"] as const) if (config[key] !== undefined) withheld.push(key);
  const kept = withoutUndefined({
    ...config,
    model: undefined,
    small_model: undefined,
    agent: inEach(config.agent, "agent"),
    mode: inEach(config.mode, "mode"),
    command: inEach(config.command, "command"),
  });
  return { config: kept, withheld };
}

/**
 * Lays the person's own denials behind the rules that an untrusted project added, because the last rule wins
 * and a project's "ask" must not lift a "deny".
 */
export function restateDenials(person: Config, merged: PermissionConfig): PermissionConfig {
  const own = withSwitches(person);
  if (own === "deny") return "deny";
  if (typeof own === "string" || Object.keys(own).length === 0) return merged;
  const restated: Exclude<PermissionConfig, string> =
    typeof merged === "string" ? { "*": merged } : { ...merged };
  for (const [permission, rules] of Object.entries(own)) {
    const denied = typeof rules === "string" ? rules === "deny" : Object.values(rules).includes("deny");
    if (!denied) continue;
    const behind = deniedLast(rules, restated[permission]);
    delete restated[permission];
    restated[permission] = behind;
  }
  return restated;
}

/** With what the older key `tools` switches off and nothing of `permission` switches on again. */
function withSwitches({ tools = {}, permission = {} }: Config): PermissionConfig {
  if (typeof permission === "string") return permission;
  const names = Object.keys(permission);
  const off = Object.keys(tools)
    .filter((tool) => tools[tool] === false)
    .map(getToolPermission)
    .filter((denied) => !names.some((name) => matches(name, denied)));
  return { ...Object.fromEntries(off.map((name) => [name, "deny" as const])), ...permission };
}

/**
 * Of the steps that the person allows and those that an untrusted project does, the fewer; and the person's agent to
 * start with, which may be one that changes nothing.
 */
export function restateLimits(own: Config, merged: Config): Config {
  const agents =
    merged.agent && mapValues(merged.agent, (agent, name) => fewerSteps(own.agent?.[name], agent));
  const max_steps = fewest(own.max_steps, merged.max_steps);
  const default_agent = own.default_agent ?? merged.default_agent;
  return withoutUndefined({ ...merged, agent: agents, max_steps, default_agent });
}

function fewerSteps(own: AgentConfig | undefined, merged: AgentConfig): AgentConfig {
  const allowed = own?.steps ?? own?.maxSteps;
  return allowed === undefined ? merged : { ...merged, steps: Math.min(allowed, merged.steps ?? allowed) };
}

function fewest(own: number | undefined, merged: number | undefined): number | undefined {
  return own === undefined ? merged : Math.min(own, merged ?? own);
}

type Rules = Exclude<PermissionConfig, string>[string];

function deniedLast(own: Rules, merged: Rules | undefined): Rules {
  if (typeof own === "string") return own;
  const rules = typeof merged === "object" ? merged : merged === undefined ? {} : { "*": merged };
  const denials = Object.entries(own).filter(([, action]) => action === "deny");
  const others = Object.entries(rules).filter(([pattern]) => !denials.some(([denied]) => denied === pattern));
  return Object.fromEntries([...others, ...denials]);
}

function restricted(
  permission: PermissionConfig,
  actions: readonly Action[],
  name: string,
  withheld: string[],
): PermissionConfig | undefined {
  const keep = (action: Action, name: string): Action | undefined => {
    if (actions.includes(action)) return action;
    withheld.push(name);
    return undefined;
  };
  if (typeof permission === "string") return keep(permission, name);
  return mapValues(permission, (rules, key) => {
    if (typeof rules === "string") return keep(rules, `${name}.${key}`);
    return mapValues(rules, (action, pattern) => keep(action, `${name}.${key}.${pattern}`));
  });
}

function switchedOff(
  tools: Record<string, boolean>,
  name: string,
  withheld: string[],
): Record<string, boolean> {
  return mapValues(tools, (on, tool) => {
    if (!on) return false;
    withheld.push(`${name}.${tool}`);
    return undefined;
  });
}

function disabledServers(mcp: NonNullable<Config["mcp"]>, withheld: string[]): NonNullable<Config["mcp"]> {
  return mapValues(mcp, (server, name) => {
    if (server.enabled === false) return { enabled: false };
    withheld.push(`mcp.${name}`);
    return undefined;
  });
}

function describedProviders(
  providers: Record<string, ProviderConfig>,
  withheld: string[],
): Record<string, ProviderConfig> {
  return mapValues(providers, ({ name, models, whitelist, blacklist, ...rest }, id) => {
    withheld.push(...Object.keys(rest).map((key) => `provider.${id}.${key}`));
    const described =
      models &&
      mapValues(models, (model, key) =>
        only(model, modelKeysOfProjects, `provider.${id}.models.${key}`, withheld),
      );
    return withoutUndefined({ name, whitelist, blacklist, models: described });
  });
}

function tightenedAgents(
  agents: Record<string, AgentConfig>,
  kind: string,
  withheld: string[],
): Record<string, AgentConfig> {
  return mapValues(agents, (agent, key) => {
    const name = `${kind}.${key}`;
    const kept = only(agent, agentKeysOfProjects, name, withheld);
    // An agent's rules stand behind the person's: an "ask" there could lift a denial, so only "deny" is kept.
    if (kept.permission !== undefined) {
      kept.permission = restricted(kept.permission, ["deny"], `${name}.permission`, withheld);
    }
    if (kept.tools !== undefined) kept.tools = switchedOff(kept.tools, `${name}.tools`, withheld);
    return withoutUndefined(kept);
  });
}

function commandsWithoutShell(
  commands: NonNullable<Config["command"]>,
  withheld: string[],
): NonNullable<Config["command"]> {
  return mapValues(commands, (command, name) => {
    if (!command.template.includes("!`")) return command;
    withheld.push(`command.${name}`);
    return undefined;
  });
}

/** A path that leads out of the project, or a URL, would send what the person did not mean to share. */
function pathsInside(paths: string[], name: string, withheld: string[]): string[] {
  const inside = paths.filter((path) => staysInside(path));
  if (inside.length < paths.length) withheld.push(name);
  return inside;
}

function staysInside(path: string): boolean {
  const out = path.startsWith("~") || path.includes("$") || /^[a-z][a-z0-9+.-]*:/i.test(path);
  return !out && !isAbsolute(path) && !path.split(/[\\/]/).includes("..");
}

function only<T extends Record<string, unknown>>(
  value: T,
  keys: Set<string>,
  name: string,
  withheld: string[],
): T {
  const kept = { ...value };
  for (const key of Object.keys(kept)) {
    if (keys.has(key)) continue;
    withheld.push(`${name}.${key}`);
    delete kept[key];
  }
  return kept;
}

function mapValues<T, R>(
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

function withoutUndefined<T extends object>(value: T): T {
  const kept = { ...value };
  for (const key of Object.keys(kept)) {
    if (Reflect.get(kept, key) === undefined) Reflect.deleteProperty(kept, key);
  }
  return kept;
}
