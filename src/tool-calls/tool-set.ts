import type { Agent } from "../agent/agent.ts";
import { BUILD_AGENT, PLAN_AGENT } from "../agent/plan-mode.ts";
import { memoizePer } from "../base/memoize.ts";
import { sha256 } from "../base/text/hash.ts";
import { sentLimit } from "../mcp/tools/server-tools.ts";
import type { UserInfo } from "../message/message.ts";
import type { Model, ToolSpec } from "../model/model.ts";
import { evaluate, isHidden } from "../permission/judge.ts";
import { getToolPermission } from "../permission/parse-rules.ts";
import type { Ruleset } from "../permission/rule.ts";
import type { Skill } from "../skill/skill.ts";
import { taskTool } from "../tool/task/task.ts";
import type { Tool } from "../tool/tool.ts";
import { callTool } from "./on-demand/call-tool.ts";
import { TOOL_SEARCH, toolSearch } from "./on-demand/tool-search.ts";
import { isServerTool, type OnDemandInput, ToolsOnDemand } from "./on-demand/tools-on-demand.ts";
import { isBuiltIn, requireSchema } from "./tool-schema.ts";

/** Editing tools by the edit format that models were trained on. All other tools are for all models. */
const editTools: ReadonlyMap<string, Model["editsBy"]> = new Map([
  ["apply_patch", "patch"],
  ["edit", "replacement"],
  ["multiedit", "replacement"],
  ["write", "replacement"],
]);

/**
 * Tools that are offered if one of them is permitted: a conversation that switches between them keeps its tools, and the
 * provider its cache. The tool itself refuses a call in the wrong mode.
 */
const planTools: readonly string[] = ["plan_enter", "plan_exit"];

/** Tools that only pass a call on: only a rule that names them forbids them, the rules of found tools apply. */
const onDemandTools: ReadonlySet<string> = new Set([TOOL_SEARCH, callTool.name]);

/** The built-in tools that small models use well. Tools of the user's servers, plugins and projects are added. */
const smallSet: ReadonlySet<string> = new Set([
  "read",
  "edit",
  "write",
  "apply_patch",
  "bash",
  "job",
  "grep",
  "glob",
]);

/** Tools that are offered to no model: the answer of `todowrite` contains the list. */
const unofferedTools: ReadonlySet<string> = new Set(["todoread"]);

/** The rules that decide an agent's calls. */
type AgentRules = Pick<Agent, "rules" | "limits" | "within">;

/** The agent that receives an offer, and all agents. */
export interface OfferedTo {
  readonly agents: ReadonlyMap<string, Agent>;
  readonly agent: Agent;
}

/** The tools of an agent, by how the model gets to know them. */
export interface SplitTools {
  /** Sent with each request. */
  readonly tools: readonly Tool[];
  /** Only named to the model, which finds them by search. */
  readonly onDemand: readonly Tool[];
}

/**
 * Selects what agents offer to models. Cached for one session, because each step asks for it: agents are identical
 * objects until the configuration is reloaded.
 */
export class AgentOffers {
  readonly #tools = memoizePer<readonly Tool[]>();
  readonly #unoffered = memoizePer<readonly Tool[]>();
  readonly #taskTools = memoizePer<readonly Tool[]>();
  readonly #specs = memoizePer<readonly ToolSpec[]>();
  readonly #digests = memoizePer<string>();
  readonly #otherNames = memoizePer<ReadonlyMap<string, string>>();
  readonly #skills = memoizePer<readonly Skill[]>();
  readonly #split = memoizePer<SplitTools>();
  readonly #onDemand = new ToolsOnDemand();

  /**
   * Returns the tools to offer with the model for the message, sorted so that prompt caches hit. Plan and build have the
   * same, so that the tools stay when the mode changes; rules refuse the others.
   */
  tools(
    tools: readonly Tool[],
    { agents, agent }: OfferedTo,
    { editsBy, toolSet, abilities }: Model,
    message: Pick<UserInfo, "tools">,
  ): readonly Tool[] {
    if (!abilities.tools) return [];
    return this.#tools(agent, [agents, editsBy, toolSet, message.tools, ...tools], () =>
      selectPermitted(tools, listCallers(agents, agent), message)
        .filter((tool) => isOffered(tool, { editsBy, toolSet }))
        .toSorted(compareNames),
    );
  }

  /** Returns the tools that are not offered to the model but run if it calls them. */
  unofferedTools(
    tools: readonly Tool[],
    { agents, agent }: OfferedTo,
    { editsBy, toolSet, abilities }: Model,
    message: Pick<UserInfo, "tools">,
  ): readonly Tool[] {
    if (!abilities.tools) return [];
    return this.#unoffered(agent, [agents, editsBy, toolSet, message.tools, ...tools], () =>
      selectPermitted(tools, listCallers(agents, agent), message).filter(
        (tool) => !isOffered(tool, { editsBy, toolSet }),
      ),
    );
  }

  /** Decides for a turn whether tools of servers are loaded on demand. */
  decideOnDemand(offeredTo: OfferedTo, input: OnDemandInput): boolean {
    return maySearch(offeredTo) && this.#onDemand.decide(input);
  }

  /** Returns what {@link decideOnDemand} would return, without keeping it. */
  estimateOnDemand(offeredTo: OfferedTo, input: OnDemandInput): boolean {
    return maySearch(offeredTo) && this.#onDemand.estimate(input);
  }

  /** Allows another decision after a compaction. */
  reconsiderOnDemand(): void {
    this.#onDemand.reconsider();
  }

  /**
   * Replaces tools of servers by the two tools with which models find and call them, or omits those beyond the number
   * that a request may contain.
   */
  split(tools: readonly Tool[], isOnDemand: boolean): SplitTools {
    return this.#split(tools, [isOnDemand], () => {
      const ofServers = tools.filter(isServerTool);
      if (!isOnDemand) {
        const omitted = new Set(ofServers.slice(sentLimit.count));
        return {
          tools: omitted.size === 0 ? tools : tools.filter((tool) => !omitted.has(tool)),
          onDemand: [],
        };
      }
      const sent = [...tools.filter((tool) => !isServerTool(tool)), toolSearch(ofServers), callTool];
      return { tools: sent.toSorted(compareNames), onDemand: ofServers };
    });
  }

  /** Returns the task tool if the agent may delegate to one of the agents; see {@link tools} for plan and build. */
  taskTools({ agents, agent: caller }: OfferedTo): readonly Tool[] {
    return this.#taskTools(caller, [agents], () => {
      const callers = listCallers(agents, caller);
      const isCallable = ({ name, mode }: Agent) =>
        mode !== "primary" && callers.some((by) => isPermitted(by, "task", name));
      const callable = [...agents.values()].filter(isCallable);
      return callable.length === 0 ? [] : [taskTool({ agents: callable })];
    });
  }

  /** Returns the agents that are offered the same, sorted; see {@link tools} for plan and build. */
  callerNames({ agents, agent }: OfferedTo): readonly string[] {
    return listCallers(agents, agent)
      .map(({ name }) => name)
      .toSorted();
  }

  /** Returns the skills to list; see {@link tools} for plan and build. */
  skills(skills: readonly Skill[], { agents, agent }: OfferedTo): readonly Skill[] {
    return this.#skills(agent, [agents, skills], () => {
      const callers = listCallers(agents, agent);
      return skills.filter(({ name }) => callers.some((by) => isPermitted(by, "skill", name)));
    });
  }

  /** Returns the other names of tools, in lower case, with the tools' own names. */
  otherNames(tools: readonly Tool[]): ReadonlyMap<string, string> {
    return this.#otherNames(tools, [], () => {
      const names = tools.flatMap(({ name, otherNames = [] }) =>
        otherNames.map((other) => [other.toLowerCase(), name] as const),
      );
      return new Map(names);
    });
  }

  /** Returns the tools as the model sees them. */
  specs(tools: readonly Tool[]): readonly ToolSpec[] {
    return this.#specs(tools, [], () =>
      tools.map((tool) => ({
        name: tool.name,
        description: tool.description,
        schema: requireSchema(tool),
      })),
    );
  }

  /** Returns the digest of {@link specs}. */
  digest(tools: readonly Tool[]): string {
    return this.#digests(tools, [], () => sha256(JSON.stringify(this.specs(tools))));
  }
}

const compareNames = (left: Tool, right: Tool): number => (left.name < right.name ? -1 : 1);

/** Whether no rule that names it denies the search to the agent; see {@link AgentOffers.tools} for plan and build. */
function maySearch({ agents, agent }: OfferedTo): boolean {
  return listCallers(agents, agent).some((by) => !isForbidden(TOOL_SEARCH, collectRulesets(by)));
}

function isOffered({ name }: Tool, { editsBy, toolSet }: Pick<Model, "editsBy" | "toolSet">): boolean {
  if (unofferedTools.has(name) || (editTools.get(name) ?? editsBy) !== editsBy) return false;
  return toolSet !== "small" || smallSet.has(name) || !isBuiltIn(name);
}

/**
 * Returns the agent's rules with an "ask" rule for each tool of unknown effect. They follow the first default and
 * precede all other rules.
 */
export function addToolRules(tools: readonly Tool[], { rules }: Pick<Agent, "rules">): Ruleset {
  if (rules[0]?.action !== "allow") return rules;
  const asking = tools.filter(({ asks }) => asks);
  const added = asking.map(({ name }) => ({ permission: name, pattern: "*", action: "ask" }) as const);
  return [...rules.slice(0, 1), ...added, ...rules.slice(1)];
}

/** Returns the agent, and the agent to which its plan tool switches if both are primary agents. */
function listCallers(agents: ReadonlyMap<string, Agent>, agent: Agent): Agent[] {
  const { name } = agent;
  const partner = name === PLAN_AGENT ? BUILD_AGENT : name === BUILD_AGENT ? PLAN_AGENT : undefined;
  const found = partner === undefined ? undefined : agents.get(partner);
  return found === undefined || found.mode === "subagent" ? [agent] : [agent, found];
}

function isPermitted(agent: AgentRules, permission: string, name: string): boolean {
  const request = { permission, subjects: [{ text: name }], always: [] };
  return collectRulesets(agent).every((ruleset) => evaluate(request, ruleset).action !== "deny");
}

function collectRulesets({ rules, limits = [], within = [] }: AgentRules): Ruleset[] {
  return [rules, ...limits, ...within];
}

function selectPermitted(
  tools: readonly Tool[],
  callers: readonly AgentRules[],
  message: Pick<UserInfo, "tools">,
): Tool[] {
  const isDenied = ({ name }: Tool) => callers.every((by) => isForbidden(name, collectRulesets(by)));
  return tools.filter((tool) => message.tools?.[tool.name] !== false && !isDenied(tool));
}

/** Whether rules forbid every call of the tool. */
export function isForbidden(name: string, rulesets: readonly Ruleset[]): boolean {
  if (onDemandTools.has(name)) {
    return rulesets.some((rules) => isNamedHidden(name, rules));
  }
  // A job was permitted as a command or a task; reading and stopping it needs nothing more.
  if (name === "job")
    return (
      ["bash", "task"].every((starter) => isForbidden(starter, rulesets)) ||
      rulesets.some((rules) => isNamedHidden(name, rules))
    );
  const alternatives = planTools.includes(name) ? planTools : [getToolPermission(name)];
  return alternatives.every((permission) => rulesets.some((rules) => isHidden(permission, rules)));
}

/** Whether rules that name the tool forbid every call of it. */
function isNamedHidden(name: string, rules: Ruleset): boolean {
  return isHidden(
    name,
    rules.filter(({ permission }) => permission !== "*"),
  );
}
