import { isAbsolute } from "node:path";
import type { PermissionConfig } from "../permission/permission-config.ts";
import type { Action } from "../permission/rule.ts";
import { mapValues, omitUndefined } from "./restate.ts";
import type { AgentConfig, Config, ProviderConfig } from "./schema.ts";

/** The settings a project may set without trust, and the dotted names of those that need the user's consent. */
export interface UntrustedSettings {
  readonly config: Config;
  readonly withheld: readonly string[];
}

/** Settings that start a program, load code or send queries. */
const settingsWithSideEffects = ["plugin", "lsp", "formatter", "search", "worktree"] as const;

/**
 * Settings that lift a limit: costs, nested tasks, background work, undo, effects of a rejection, retries, or what the model
 * sees.
 */
function findLoosenedLimits(config: Config): (keyof Config)[] {
  const { max_cost, subagent_depth, snapshot, experimental } = config;
  const { retry, tool_output, subagent_idle_seconds, jobs } = config;
  const loosened: [keyof Config, boolean][] = [
    ["max_cost", max_cost !== undefined],
    ["subagent_depth", (subagent_depth ?? 0) > 1],
    ["snapshot", snapshot === false],
    ["experimental", experimental?.continue_loop_on_deny === true],
    ["retry", retry !== undefined],
    ["tool_output", tool_output !== undefined],
    ["subagent_idle_seconds", subagent_idle_seconds !== undefined],
    ["jobs", jobs !== undefined],
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

/** Without cost or id, because the user's cost limits are computed from them. */
const modelKeysOfProjects = new Set([
  "name",
  "family",
  "tool_set",
  "limit",
  "reasoning",
  "attachment",
  "tool_call",
  "temperature",
  "modalities",
]);

/** Settings that only the user may set, for all projects. */
const personalSettings = ["sessions", "environment", "sandbox", "approval", "notify"] as const;

/** Omits the settings that no project may set, trusted or not. */
export function omitPersonalSettings(config: Config): { config: Config; leftOut: readonly string[] } {
  const leftOut = personalSettings.filter((key) => config[key] !== undefined);
  if (leftOut.length === 0) return { config, leftOut };
  const result = { ...config };
  for (const key of leftOut) delete result[key];
  return { config: result, leftOut };
}

/**
 * Omits settings that start, load or redirect something or loosen a permission.
 * The rest can only describe or tighten.
 */
export function withholdUntrusted(config: Config): UntrustedSettings {
  const withheld: string[] = [];
  const result: Config = { ...config };

  // Names each event, so that the question shows the commands of all files.
  if (result.hooks !== undefined) {
    withheld.push(
      ...(result.hooks === false ? ["hooks"] : Object.keys(result.hooks).map((event) => `hooks.${event}`)),
    );
    delete result.hooks;
  }
  for (const key of [...settingsWithSideEffects, ...findLoosenedLimits(config)]) {
    if (result[key] !== undefined) withheld.push(key);
    delete result[key];
  }
  if (result.permission !== undefined) {
    result.permission = restrictPermission(result.permission, ["ask", "deny"], "permission", withheld);
  }
  if (result.tools !== undefined) result.tools = restrictTools(result.tools, "tools", withheld);
  if (result.mcp !== undefined) result.mcp = restrictServers(result.mcp, withheld);
  if (result.provider !== undefined) result.provider = restrictProviders(result.provider, withheld);
  if (result.agent !== undefined) result.agent = restrictAgents(result.agent, "agent", withheld);
  if (result.mode !== undefined) result.mode = restrictAgents(result.mode, "mode", withheld);
  if (result.command !== undefined) result.command = omitShellCommands(result.command, withheld);
  if (result.instructions !== undefined) {
    result.instructions = omitOutsidePaths(result.instructions, "instructions", withheld);
  }
  if (result.skills?.paths !== undefined) {
    result.skills = {
      ...result.skills,
      paths: omitOutsidePaths(result.skills.paths, "skills.paths", withheld),
    };
  }
  return { config: omitUndefined(result), withheld };
}

/** Omits chosen models. If the user limits costs, a model without a known price would not be counted. */
export function withholdModels(config: Config): UntrustedSettings {
  const withheld: string[] = [];
  const withoutModel = <T extends { model?: unknown }>(value: T, name: string): T => {
    if (value.model === undefined) return value;
    withheld.push(`${name}.model`);
    return omitUndefined({ ...value, model: undefined });
  };
  const inEach = <T extends { model?: unknown }>(values: Record<string, T> | undefined, name: string) =>
    values && mapValues(values, (value, key) => withoutModel(value, `${name}.${key}`));
  for (const key of ["model", "small_model"] as const) if (config[key] !== undefined) withheld.push(key);
  const result = omitUndefined({
    ...config,
    model: undefined,
    small_model: undefined,
    agent: inEach(config.agent, "agent"),
    mode: inEach(config.mode, "mode"),
    command: inEach(config.command, "command"),
  });
  return { config: result, withheld };
}

function restrictPermission(
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

function restrictTools(
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

function restrictServers(mcp: NonNullable<Config["mcp"]>, withheld: string[]): NonNullable<Config["mcp"]> {
  return mapValues(mcp, (server, name) => {
    if (server.enabled === false) return { enabled: false };
    withheld.push(`mcp.${name}`);
    return undefined;
  });
}

function restrictProviders(
  providers: Record<string, ProviderConfig>,
  withheld: string[],
): Record<string, ProviderConfig> {
  return mapValues(providers, ({ name, models, whitelist, blacklist, ...rest }, id) => {
    withheld.push(...Object.keys(rest).map((key) => `provider.${id}.${key}`));
    const described =
      models &&
      mapValues(models, (model, key) =>
        pickKeys(model, modelKeysOfProjects, `provider.${id}.models.${key}`, withheld),
      );
    return omitUndefined({ name, whitelist, blacklist, models: described });
  });
}

function restrictAgents(
  agents: Record<string, AgentConfig>,
  kind: string,
  withheld: string[],
): Record<string, AgentConfig> {
  return mapValues(agents, (agent, key) => {
    const name = `${kind}.${key}`;
    const result = pickKeys(agent, agentKeysOfProjects, name, withheld);
    // Agent rules come after the user's rules, and an "ask" could override a denial: keep only "deny".
    if (result.permission !== undefined) {
      result.permission = restrictPermission(result.permission, ["deny"], `${name}.permission`, withheld);
    }
    if (result.tools !== undefined) result.tools = restrictTools(result.tools, `${name}.tools`, withheld);
    return omitUndefined(result);
  });
}

function omitShellCommands(
  commands: NonNullable<Config["command"]>,
  withheld: string[],
): NonNullable<Config["command"]> {
  return mapValues(commands, (command, name) => {
    if (!command.template.includes("!`")) return command;
    withheld.push(`command.${name}`);
    return undefined;
  });
}

/** Omits paths outside the project and URLs, which could send content that the user did not mean to share. */
function omitOutsidePaths(paths: string[], name: string, withheld: string[]): string[] {
  const inside = paths.filter((path) => staysInside(path));
  if (inside.length < paths.length) withheld.push(name);
  return inside;
}

function staysInside(path: string): boolean {
  const out = path.startsWith("~") || path.includes("$") || /^[a-z][a-z0-9+.-]*:/i.test(path);
  return !out && !isAbsolute(path) && !path.split(/[\\/]/).includes("..");
}

function pickKeys<T extends Record<string, unknown>>(
  value: T,
  keys: Set<string>,
  name: string,
  withheld: string[],
): T {
  const result = { ...value };
  for (const key of Object.keys(result)) {
    if (keys.has(key)) continue;
    withheld.push(`${name}.${key}`);
    delete result[key];
  }
  return result;
}
