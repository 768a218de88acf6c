import type { AgentConfig, PermissionConfig } from "../config/schema.ts";
import { defaultRules, isHidden, parseRules, parseToolSwitches } from "../permission/evaluate.ts";
import type { Rule, Ruleset } from "../permission/rule.ts";
import { parseAgentConfig, toModelRef } from "./agent-config.ts";
import { readAgentFiles } from "./agent-files.ts";
import { mayEdit, tighten, underLimit, withOutputs } from "./agent-rules.ts";
import { type Agent, noDescription } from "./agent.ts";
import { builtInAgents, builtInNames } from "./built-in.ts";
import { fromOtherProgram } from "./other-agent.ts";

/** Always there: what starts when nothing else can. */
const FALLBACK = "build";

export interface AgentSources {
  readonly config: {
    /** Agents by name, as in the configuration file. */
    readonly agent?: Readonly<Record<string, unknown>>;
    /** The old form of primary agents. */
    readonly mode?: Readonly<Record<string, unknown>>;
    readonly default_agent?: string;
    readonly permission?: PermissionConfig;
    /** The old form of permission. */
    readonly tools?: Readonly<Record<string, boolean>>;
  };
  /** Config folders, the later the stronger; all of them are stronger than `config`. */
  readonly folders: readonly string[];
  /** Folders of other programs, lowest first; weaker than `folders`. */
  readonly otherFolders?: readonly string[];
  /** Those of `folders` that came with a project nobody has trusted yet: their agents may only tighten rules. */
  readonly untrusted?: readonly string[];
  /** Whether those choose no models either. */
  readonly withoutModels?: boolean;
  /** What there is without a project that nobody has trusted yet. */
  readonly personal?: Pick<AgentSources, "config" | "folders" | "otherFolders">;
  /** Those of `folders` and `otherFolders` that came with a project, and its root, a real path, which links in them must not leave. */
  readonly confined?: { readonly folders: readonly string[]; readonly root: string };
  /** Where whole outputs of tools are kept; agents may read there. */
  readonly outputFolder: string;
  readonly skillFolders: readonly string[];
  /** The person's home folder, for `~` in patterns. */
  readonly home: string;
}

interface AgentProblem {
  /** The file that is wrong; none where it is the configuration. */
  path?: string;
  message: string;
}

export interface LoadedAgents {
  agents: Map<string, Agent>;
  /** Name of the agent that new sessions begin with. */
  default: string;
  problems: AgentProblem[];
  /** What agents of untrusted folders say and what does not count until the folder is trusted. */
  waiting: AgentProblem[];
}

/** Built-in agents, changed and joined by those of the configuration and of the config folders. Never throws for what they hold. */
export async function loadAgents(sources: AgentSources): Promise<LoadedAgents> {
  const problems: AgentProblem[] = [];
  const waiting: AgentProblem[] = [];
  const layers = ruleLayers(sources);
  const drafts = await loadDrafts(sources, problems, waiting);
  if (sources.personal !== undefined) {
    const own = await loadDrafts({ ...sources, ...sources.personal }, [], []);
    for (const [name, draft] of drafts) drafts.set(name, keepUserSettings(draft, own.get(name), waiting));
  }
  const kept = withoutDisabled(drafts, problems);
  protectPlan(kept, layers);
  const agents = new Map<string, Agent>();
  for (const [name, draft] of kept) {
    const limit = limitOf(draft, layers);
    agents.set(name, {
      ...draft.agent,
      named: new Set(draft.own.map(({ permission }) => permission)),
      rules: rulesOf(draft, layers),
      ...(limit && { limits: [limit] }),
    });
  }
  return {
    agents,
    default: chooseDefault(agents, sources.config.default_agent, problems),
    problems,
    waiting,
  };
}

async function loadDrafts(
  sources: AgentSources,
  problems: AgentProblem[],
  waiting: AgentProblem[],
): Promise<Map<string, Draft>> {
  const definitions = await readDefinitions(sources, problems);
  const layers = ruleLayers(sources);
  const drafts = builtInDrafts(layers.defaults);
  for (const definition of definitions) {
    const draft = drafts.get(definition.name) ?? customDraft(definition.name);
    drafts.set(definition.name, merge(draft, definition, rulesOf(draft, layers), waiting));
  }
  return drafts;
}

/**
 * What a project may not say of an agent that the person has: more steps, or that it cannot be chosen, for then another
 * would answer that may do more.
 */
function keepUserSettings(draft: Draft, own: Draft | undefined, waiting: AgentProblem[]): Draft {
  if (own === undefined) return draft;
  const { name, steps = Infinity } = draft.agent;
  const isTaken = canStart(own.agent) && !canStart(draft.agent);
  const isLonger = own.agent.steps !== undefined && steps > own.agent.steps;
  if (isTaken) waiting.push({ message: `${name} cannot be chosen any more (mode, hidden)` });
  if (isLonger) waiting.push({ message: `more steps of ${name}` });
  const { mode, hidden } = isTaken ? own.agent : draft.agent;
  const agent = { ...draft.agent, mode, hidden, ...(isLonger && { steps: own.agent.steps }) };
  return { ...draft, agent };
}

/** One place that says something of an agent. */
interface Definition {
  readonly name: string;
  readonly path?: string;
  readonly config: AgentConfig;
  /** What goes to the provider. */
  readonly options: Record<string, unknown>;
  readonly rules: Ruleset;
  readonly trusted: boolean;
  /** Whether the model that it names counts. */
  readonly choosesModel: boolean;
}

/** An agent while its definitions are laid over one another. */
interface Draft {
  readonly agent: Omit<Agent, "rules" | "limits" | "named">;
  readonly builtIn: Ruleset;
  /** Holds beside all rules, but for what the agent's own definition says. */
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
    place: `mode.${name}`,
  }));
  const agents = Object.entries(config.agent ?? {}).map(([name, raw]) => ({
    name,
    raw,
    place: `agent.${name}`,
  }));
  const written: Written[] = [...modes, ...agents].map((entry) => ({ ...entry, trusted: true }));
  const native = builtInNames();
  for (const folder of sources.otherFolders ?? []) {
    const files = await filesOf(folder);
    for (const { path, name } of files.filter(({ name }) => native.has(name)))
      problems.push({ path, message: `an agent of the program is called ${name}; this one is left out` });
    const others = files.filter(({ name }) => !native.has(name));
    // They can only describe and deny, so trust plays no part.
    written.push(...others.map((file) => ({ ...file, raw: fromOtherProgram(file.raw), trusted: true })));
  }
  for (const folder of folders) {
    const files = await filesOf(folder);
    written.push(...files.map((file) => ({ ...file, trusted: !untrusted.includes(folder) })));
  }
  return written.map((entry) => toDefinition(entry, sources, problems));
}

/** What somebody wrote of an agent, not yet checked, and where. */
interface Written {
  readonly name: string;
  readonly raw: unknown;
  readonly path?: string;
  /** Dotted name in the configuration, where it is no file of its own. */
  readonly place?: string;
  readonly trusted: boolean;
}

function asPrimary(raw: unknown): unknown {
  return typeof raw === "object" ? { mode: "primary", ...raw } : raw;
}

function toDefinition(
  written: Written,
  { home, withoutModels = false }: AgentSources,
  problems: AgentProblem[],
): Definition {
  const { name, path, place, trusted } = written;
  const { config, extra, problems: found } = parseAgentConfig(written.raw);
  for (const message of found) problems.push(path ? { path, message } : { message: `${place}: ${message}` });
  const options = { ...extra, ...config.options };
  return {
    name,
    path,
    config,
    options,
    rules: configuredRules(config, home),
    trusted,
    choosesModel: trusted || !withoutModels,
  };
}

/** The old form lies underneath the new one. */
function configuredRules(config: Pick<AgentSources["config"], "permission" | "tools">, home: string): Rule[] {
  return [...parseToolSwitches(config.tools ?? {}), ...parseRules(config.permission ?? {}, home)];
}

function builtInDrafts(defaults: Ruleset): Map<string, Draft> {
  return new Map(
    builtInAgents(defaults).map(({ rules, limit, ...agent }) => [
      agent.name,
      { agent: { ...agent, options: {}, native: true }, builtIn: rules, limit, own: [], disabled: false },
    ]),
  );
}

function customDraft(name: string): Draft {
  return {
    agent: { name, description: noDescription, mode: "all", hidden: false, options: {}, native: false },
    builtIn: [],
    own: [],
    disabled: false,
  };
}

function merge(draft: Draft, definition: Definition, prior: Ruleset, waiting: AgentProblem[]): Draft {
  const { config, rules, options } = definition.trusted ? definition : withhold(definition, prior, waiting);
  return {
    agent: mergeSettings(draft.agent, config, options),
    builtIn: draft.builtIn,
    limit: draft.limit,
    own: [...draft.own, ...rules],
    disabled: config.disable ?? draft.disabled,
  };
}

/** Until a project is trusted its agents may describe and tighten only. */
function withhold(definition: Definition, prior: Ruleset, waiting: AgentProblem[]): Definition {
  const rules = tighten(prior, definition.rules);
  // Whose agent is gone would go on under one that may do more.
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

function withoutDisabled(drafts: ReadonlyMap<string, Draft>, problems: AgentProblem[]): Map<string, Draft> {
  const kept = new Map([...drafts].filter(([, draft]) => !draft.disabled));
  const fallback = drafts.get(FALLBACK);
  if (fallback === undefined || [...kept.values()].some(({ agent }) => canStart(agent))) return kept;
  problems.push({ message: `every primary agent is disabled or hidden; ${FALLBACK} stays` });
  return new Map([
    [FALLBACK, { ...fallback, agent: { ...fallback.agent, mode: "primary", hidden: false } }],
    ...kept,
  ]);
}

/** A task from plan must not reach an agent that edits. */
function protectPlan(drafts: Map<string, Draft>, layers: RuleLayers): void {
  const plan = drafts.get("plan");
  if (plan === undefined) return;
  const editing = [...drafts.values()].filter(
    (draft) =>
      draft.agent.mode !== "primary" &&
      mayEdit(rulesOf(draft, layers)) &&
      mayEdit(limitOf(draft, layers) ?? []),
  );
  const names = editing.map(({ agent }) => agent.name).filter((name) => name !== "general");
  const denials = names.map((pattern): Rule => ({ permission: "task", pattern, action: "deny" }));
  const limit = plan.limit && [...plan.limit, ...denials];
  drafts.set("plan", { ...plan, builtIn: [...plan.builtIn, ...denials], limit });
}

/** Who configures such an agent by its name says what it may do; rules for all agents cannot widen it. */
function limitOf(draft: Draft, layers: RuleLayers): Rule[] | undefined {
  const { limit, own } = draft;
  return limit && [...limit, ...withOutputs(own, layers.outputFolder, hiddenIn(draft, layers))];
}

function rulesOf(draft: Draft, layers: RuleLayers): Rule[] {
  const configured = withOutputs(
    [...personalRules(draft, layers), ...draft.own],
    layers.outputFolder,
    hiddenIn(draft, layers),
  );
  return [...layers.defaults, ...draft.builtIn, ...configured];
}

/** What all agents share. */
interface RuleLayers {
  readonly defaults: Ruleset;
  /** The user's rules for all agents. */
  readonly person: Ruleset;
  readonly outputFolder: string;
}

function ruleLayers(sources: AgentSources): RuleLayers {
  const { config, home, outputFolder } = sources;
  return { defaults: defaultRules(sources), person: configuredRules(config, home), outputFolder };
}

function personalRules({ builtIn, limit }: Draft, { person }: RuleLayers): Ruleset {
  return limit === undefined ? person : underLimit(person, builtIn, limit);
}

function hiddenIn(draft: Draft, layers: RuleLayers): (permission: string) => boolean {
  const rules = [...layers.defaults, ...draft.builtIn, ...personalRules(draft, layers), ...draft.own];
  return (permission) => isHidden(permission, rules);
}

function chooseDefault(
  agents: ReadonlyMap<string, Agent>,
  wanted: string | undefined,
  problems: AgentProblem[],
): string {
  const chosen = wanted === undefined ? undefined : agents.get(wanted);
  if (chosen && canStart(chosen)) return chosen.name;
  const instead = fallbackOf(agents);
  if (wanted !== undefined) {
    problems.push({ message: `default_agent: ${whyNot(wanted, chosen)}; ${instead} is used` });
  }
  return instead;
}

function fallbackOf(agents: ReadonlyMap<string, Agent>): string {
  const build = agents.get(FALLBACK);
  if (build && canStart(build)) return FALLBACK;
  return [...agents.values()].find(canStart)?.name ?? FALLBACK;
}

function whyNot(wanted: string, agent: Agent | undefined): string {
  if (!agent) return `there is no agent "${wanted}"`;
  return agent.hidden ? `"${wanted}" is hidden` : `"${wanted}" is a subagent`;
}

function canStart(agent: Pick<Agent, "mode" | "hidden">): boolean {
  return agent.mode !== "subagent" && !agent.hidden;
}
