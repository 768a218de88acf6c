import type { AgentConfig } from "../config/schema.ts";
import { defaultRules, readingTools } from "../permission/default-rules.ts";
import { isHidden } from "../permission/judge.ts";
import { parseRules, parseToolSwitches } from "../permission/parse-rules.ts";
import type { PermissionConfig } from "../permission/permission-config.ts";
import type { Rule, Ruleset } from "../permission/rule.ts";
import { lazy } from "../base/lazy.ts";
import { parseAgentConfig, toModelRef } from "./agent-config.ts";
import { readAgentFiles } from "./agent-files.ts";
import { mayEdit, tighten, filterByLimit, allowOutputFolder } from "./agent-rules.ts";
import { type Agent, noDescription } from "./agent.ts";
import { builtInAgents, builtInNames } from "./built-in.ts";
import { PLAN_AGENT } from "./plan-mode.ts";

/** Fallback agent, which always exists. */
const FALLBACK = "build";

export interface AgentSources {
  readonly config: {
    /** Agents by name, as configured. */
    readonly agent?: Readonly<Record<string, unknown>>;
    /** Old form of primary agents. */
    readonly mode?: Readonly<Record<string, unknown>>;
    readonly default_agent?: string;
    readonly permission?: PermissionConfig;
    /** Old form of permission. */
    readonly tools?: Readonly<Record<string, boolean>>;
  };
  /** Configuration folders, lowest precedence first. All override `config`. */
  readonly folders: readonly string[];
  /** Folders of other programs, lowest precedence first. Overridden by `folders`. */
  readonly otherFolders?: readonly string[];
  /** The `folders` of an untrusted project; their agents may only tighten rules. */
  readonly untrusted?: readonly string[];
  /** Whether agents of untrusted folders may not choose a model. */
  readonly withoutModels?: boolean;
  /** The sources without the untrusted project. */
  readonly personal?: Pick<AgentSources, "config" | "folders" | "otherFolders">;
  /** Folders of the project, and its root as a real path that their links must not leave. */
  readonly confined?: { readonly folders: readonly string[]; readonly root: string };
  /** Folder of stored tool outputs; agents may read it. */
  readonly outputFolder: string;
  readonly skillFolders: readonly string[];
  /** The user's home folder, for `~` in patterns. */
  readonly home: string;
}

interface AgentProblem {
  /** Path of the invalid file; none for the configuration. */
  path?: string;
  message: string;
}

export interface LoadedAgents {
  agents: Map<string, Agent>;
  /** Name of the agent for new sessions. */
  default: string;
  problems: AgentProblem[];
  /** Settings of untrusted agents that are ignored until the folder is trusted. */
  waiting: AgentProblem[];
}

/**
 * Loads built-in agents and merges those of the configuration and its folders. Never throws for invalid
 * content.
 */
export async function loadAgents(sources: AgentSources): Promise<LoadedAgents> {
  const problems: AgentProblem[] = [];
  const waiting: AgentProblem[] = [];
  const layers = createRuleLayers(sources);
  const drafts = await loadDrafts(sources, layers, problems, waiting);
  if (sources.personal !== undefined) {
    const personal = { ...sources, ...sources.personal };
    const own = await loadDrafts(personal, createRuleLayers(personal), [], []);
    for (const [name, draft] of drafts) drafts.set(name, keepUserSettings(draft, own.get(name), waiting));
  }
  const enabled = omitDisabled(drafts, problems);
  const agents = new Map<string, Agent>();
  for (const [name, draft] of enabled) agents.set(name, createAgent(draft, layers));
  const plan = enabled.get(PLAN_AGENT);
  const denials = denyEditingTasks([...agents.values()]);
  if (plan !== undefined && denials.length > 0)
    agents.set(PLAN_AGENT, createAgent(extendBuiltIn(plan, denials), layers));
  return {
    agents,
    default: chooseDefault(agents, sources.config.default_agent, problems),
    problems,
    waiting,
  };
}

async function loadDrafts(
  sources: AgentSources,
  layers: RuleLayers,
  problems: AgentProblem[],
  waiting: AgentProblem[],
): Promise<Map<string, Draft>> {
  const definitions = await readDefinitions(sources, problems);
  const drafts = createBuiltInDrafts(layers.defaults);
  for (const definition of definitions) {
    const draft = drafts.get(definition.name) ?? createCustomDraft(definition.name);
    drafts.set(definition.name, merge(draft, definition, layers, waiting));
  }
  return drafts;
}

/**
 * Keeps the user's step limit, and keeps the agent selectable: otherwise another agent with more permissions
 * would answer.
 */
function keepUserSettings(draft: Draft, own: Draft | undefined, waiting: AgentProblem[]): Draft {
  if (own === undefined) return draft;
  const { name, steps = Infinity } = draft.agent;
  const isTaken = canStart(own.agent) && !canStart(draft.agent);
  const isLonger = own.agent.steps !== undefined && steps > own.agent.steps;
  if (isTaken) waiting.push({ message: `${name} cannot be made unselectable (mode, hidden)` });
  if (isLonger) waiting.push({ message: `more steps of ${name}` });
  const { mode, hidden } = isTaken ? own.agent : draft.agent;
  const agent = { ...draft.agent, mode, hidden, ...(isLonger && { steps: own.agent.steps }) };
  return { ...draft, agent };
}

/** One definition of an agent; an agent may have several. */
interface Definition {
  readonly name: string;
  readonly path?: string;
  readonly config: AgentConfig;
  /** Passed to the provider. */
  readonly options: Record<string, unknown>;
  readonly rules: Ruleset;
  readonly trusted: boolean;
  /** Whether its model is used. */
  readonly choosesModel: boolean;
}

/** An agent while its definitions are merged. */
interface Draft {
  readonly agent: Omit<Agent, "rules" | "limits" | "named">;
  readonly builtIn: Ruleset;
  /** Limits all rules except those of the agent's own definition. */
  readonly limit?: Ruleset | undefined;
  readonly own: Ruleset;
  readonly disabled: boolean;
}

async function readDefinitions(sources: AgentSources, problems: AgentProblem[]): Promise<Definition[]> {
  const { config, folders, untrusted = [], confined } = sources;
  const filesOf = (folder: string) =>
    readAgentFiles(
      folder,
      (path, message) => problems.push({ path, message }),
      confined?.folders.includes(folder) ? confined.root : undefined,
    );
  const modes = Object.entries(config.mode ?? {}).map(([name, raw]) => ({
    name,
    raw: asPrimary(raw),
    settingPath: `mode.${name}`,
  }));
  const agents = Object.entries(config.agent ?? {}).map(([name, raw]) => ({
    name,
    raw,
    settingPath: `agent.${name}`,
  }));
  const written: RawDefinition[] = [...modes, ...agents].map((entry) => ({ ...entry, trusted: true }));
  const native = builtInNames();
  for (const folder of sources.otherFolders ?? []) {
    const files = await filesOf(folder);
    for (const { path, name } of files.filter(({ name }) => native.has(name)))
      problems.push({ path, message: `there is a built-in agent ${name}; this one is ignored` });
    const others = files.filter(({ name }) => !native.has(name));
    if (others.length === 0) continue;
    const { convertForeignAgent } = await import("./other-agent.ts");
    // These can only describe and deny, so they need no trust.
    written.push(...others.map((file) => ({ ...file, raw: convertForeignAgent(file.raw), trusted: true })));
  }
  for (const folder of folders) {
    const files = await filesOf(folder);
    written.push(...files.map((file) => ({ ...file, trusted: !untrusted.includes(folder) })));
  }
  return written.map((entry) => toDefinition(entry, sources, problems));
}

/** An unchecked definition with its source. */
interface RawDefinition {
  readonly name: string;
  readonly raw: unknown;
  readonly path?: string;
  /** Dotted name in the configuration, if it is not a file. */
  readonly settingPath?: string;
  readonly trusted: boolean;
}

function asPrimary(raw: unknown): unknown {
  return typeof raw === "object" ? { mode: "primary", ...raw } : raw;
}

function toDefinition(
  written: RawDefinition,
  { home, withoutModels = false }: AgentSources,
  problems: AgentProblem[],
): Definition {
  const { name, path, settingPath, trusted } = written;
  const { config, extra, problems: found } = parseAgentConfig(written.raw);
  for (const message of found)
    problems.push(path ? { path, message } : { message: `${settingPath}: ${message}` });
  const options = { ...extra, ...config.options };
  return {
    name,
    path,
    config,
    options,
    rules: parseConfiguredRules(config, home),
    trusted,
    choosesModel: trusted || !withoutModels,
  };
}

/** The old key `tools` comes before `permission`. */
function parseConfiguredRules(
  config: Pick<AgentSources["config"], "permission" | "tools">,
  home: string,
): Rule[] {
  return [...parseToolSwitches(config.tools ?? {}), ...parseRules(config.permission ?? {}, home)];
}

function createBuiltInDrafts(defaults: Ruleset): Map<string, Draft> {
  return new Map(
    builtInAgents(defaults).map(({ rules, limit, ...agent }) => [
      agent.name,
      { agent: { ...agent, options: {}, native: true }, builtIn: rules, limit, own: [], disabled: false },
    ]),
  );
}

function createCustomDraft(name: string): Draft {
  return {
    agent: { name, description: noDescription, mode: "all", hidden: false, options: {}, native: false },
    builtIn: [],
    own: [],
    disabled: false,
  };
}

function merge(draft: Draft, definition: Definition, layers: RuleLayers, waiting: AgentProblem[]): Draft {
  const { config, rules, options } = definition.trusted
    ? definition
    : withhold(definition, createRules(draft, layers).rules, waiting);
  return {
    agent: mergeSettings(draft.agent, config, options),
    builtIn: draft.builtIn,
    limit: draft.limit,
    own: [...draft.own, ...rules],
    disabled: config.disable ?? draft.disabled,
  };
}

/** Until a project is trusted, its agents may only describe and tighten. */
function withhold(definition: Definition, prior: Ruleset, waiting: AgentProblem[]): Definition {
  const rules = tighten(prior, definition.rules);
  // Removing an agent would make its users continue under a less restricted one.
  const { disable, ...described } = definition.config;
  const { model, ...others } = described;
  const config = definition.choosesModel ? described : others;
  const withheld = [
    ...(rules.length < definition.rules.length ? ["permission rules that could loosen others"] : []),
    ...(disable !== undefined ? ["disable"] : []),
    ...(model !== undefined && !definition.choosesModel ? ["model"] : []),
    ...Object.keys(definition.options).map((key) => `option ${key}`),
  ];
  if (withheld.length > 0) waiting.push({ path: definition.path, message: withheld.join(", ") });
  return { ...definition, config, rules, options: {} };
}

function mergeSettings(
  agent: Draft["agent"],
  config: AgentConfig,
  options: Record<string, unknown>,
): Draft["agent"] {
  return {
    ...agent,
    label: config.name ?? agent.label,
    description: config.description ?? agent.description,
    mode: config.mode ?? agent.mode,
    hidden: config.hidden ?? agent.hidden,
    prompt: config.prompt ?? agent.prompt,
    temperature: config.temperature ?? agent.temperature,
    topP: config.top_p ?? config.topP ?? agent.topP,
    steps: config.steps ?? config.maxSteps ?? agent.steps,
    color: config.color ?? agent.color,
    ...mergeModel(agent, config),
    options: { ...agent.options, ...options },
  };
}

function mergeModel(agent: Draft["agent"], config: AgentConfig): Pick<Agent, "model" | "variant"> {
  const { model, variant } = config;
  if (model !== undefined) return { model: toModelRef(model, variant), variant: undefined };
  if (variant === undefined) return {};
  return agent.model ? { model: { ...agent.model, variant } } : { variant };
}

function omitDisabled(drafts: ReadonlyMap<string, Draft>, problems: AgentProblem[]): Map<string, Draft> {
  const enabled = new Map([...drafts].filter(([, draft]) => !draft.disabled));
  const fallback = drafts.get(FALLBACK);
  if (fallback === undefined || [...enabled.values()].some(({ agent }) => canStart(agent))) return enabled;
  problems.push({ message: `every primary agent is disabled or hidden; ${FALLBACK} is used` });
  return new Map([
    [FALLBACK, { ...fallback, agent: { ...fallback.agent, mode: "primary", hidden: false } }],
    ...enabled,
  ]);
}

function createAgent(draft: Draft, layers: RuleLayers): Agent {
  const { rules, limit } = createRules(draft, layers);
  return {
    ...draft.agent,
    named: new Set(draft.own.map(({ permission }) => permission)),
    rules,
    ...(limit && { limits: [limit] }),
  };
}

/** Rules that prevent the plan agent from starting tasks of agents that edit. */
function denyEditingTasks(agents: readonly Agent[]): Rule[] {
  const editing = agents.filter(
    ({ mode, rules, limits = [] }) => mode !== "primary" && mayEdit(rules) && limits.every(mayEdit),
  );
  const names = editing.map(({ name }) => name).filter((name) => name !== "general");
  return names.map((pattern): Rule => ({ permission: "task", pattern, action: "deny" }));
}

function extendBuiltIn(draft: Draft, added: Ruleset): Draft {
  const { builtIn, limit } = draft;
  return { ...draft, builtIn: [...builtIn, ...added], limit: limit && [...limit, ...added] };
}

/** A definition by name may widen a read-only agent; rules for all agents cannot. */
function createRules(draft: Draft, layers: RuleLayers): { rules: Rule[]; limit: Rule[] | undefined } {
  const { defaults, outputFolder } = layers;
  const { builtIn, limit, own } = draft;
  const configured = [...createUserRules(draft, layers), ...own];
  const all = [...defaults, ...builtIn, ...configured];
  const findReaders = lazy(() => readingTools.filter((permission) => !isHidden(permission, all)));
  const open = (rules: Ruleset) => allowOutputFolder(rules, outputFolder, findReaders);
  return {
    rules: [...defaults, ...builtIn, ...open(configured)],
    limit: limit && [...limit, ...open(own)],
  };
}

/** Rules shared by all agents. */
interface RuleLayers {
  readonly defaults: Ruleset;
  /** The user's rules for all agents. */
  readonly user: Ruleset;
  readonly outputFolder: string;
}

function createRuleLayers(sources: AgentSources): RuleLayers {
  const { config, home, outputFolder } = sources;
  return { defaults: defaultRules(sources), user: parseConfiguredRules(config, home), outputFolder };
}

function createUserRules({ builtIn, limit }: Draft, { user }: RuleLayers): Ruleset {
  return limit === undefined ? user : filterByLimit(user, builtIn, limit);
}

function chooseDefault(
  agents: ReadonlyMap<string, Agent>,
  wanted: string | undefined,
  problems: AgentProblem[],
): string {
  const chosen = wanted === undefined ? undefined : agents.get(wanted);
  if (chosen && canStart(chosen)) return chosen.name;
  const instead = chooseFallback(agents);
  if (wanted !== undefined) {
    problems.push({ message: `default_agent: ${explainRejection(wanted, chosen)}; ${instead} is used` });
  }
  return instead;
}

function chooseFallback(agents: ReadonlyMap<string, Agent>): string {
  const build = agents.get(FALLBACK);
  if (build && canStart(build)) return FALLBACK;
  return [...agents.values()].find(canStart)?.name ?? FALLBACK;
}

function explainRejection(wanted: string, agent: Agent | undefined): string {
  if (!agent) return `agent not found: "${wanted}"`;
  return agent.hidden ? `"${wanted}" is hidden` : `"${wanted}" is a subagent`;
}

function canStart(agent: Pick<Agent, "mode" | "hidden">): boolean {
  return agent.mode !== "subagent" && !agent.hidden;
}
