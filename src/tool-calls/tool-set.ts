import type { Agent } from "../agent/agent.ts";
import { BUILD_AGENT, PLAN_AGENT } from "../agent/plan-mode.ts";
import { memoizePer } from "../base/memoize.ts";
import type { UserInfo } from "../message/message.ts";
import type { Model, ToolSpec } from "../model/model.ts";
import { evaluate, isHidden, getToolPermission } from "../permission/evaluate.ts";
import type { Ruleset } from "../permission/rule.ts";
import type { Skill } from "../skill/skill.ts";
import { taskTool } from "../tool/task.ts";
import type { Tool } from "../tool/tool.ts";
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

/** The built-in tools that small models use well. Tools of the user's servers, plugins and projects are added. */
const smallSet: ReadonlySet<string> = new Set([
  "read",
  "edit",
  "write",
  "apply_patch",
  "bash",
  "grep",
  "glob",
]);

/** Tools that are offered to no model: the answer of `todowrite` contains the list. */
const unofferedTools: ReadonlySet<string> = new Set(["todoread"]);

/** The rules that decide an agent's calls. */
type AgentRules = Pick<Agent, "rules" | "limits" | "within">;

/**
 * Selects what agents offer to models. Cached for one session, because each step asks for it: agents are identical
 * objects until the configuration is reloaded.
 */
export class AgentOffers {
  readonly #tools = memoizePer<readonly Tool[]>();
  readonly #unoffered = memoizePer<readonly Tool[]>();
  readonly #taskTools = memoizePer<readonly Tool[]>();
  readonly #specs = memoizePer<readonly ToolSpec[]>();
  readonly #skills = memoizePer<readonly Skill[]>();

  /** Returns the tools that the agent may use with the model for the message, sorted so that prompt caches hit. */
  tools(
    tools: readonly Tool[],
    agent: AgentRules,
    { editsBy, toolSet, abilities }: Model,
    message: UserInfo,
  ): readonly Tool[] {
    if (!abilities.tools) return [];
    return this.#tools(agent, [editsBy, toolSet, message.tools, ...tools], () =>
      selectPermitted(tools, agent, message)
        .filter((tool) => isOffered(tool, { editsBy, toolSet }))
        .toSorted((left, right) => (left.name < right.name ? -1 : 1)),
    );
  }

  /** Returns the tools that are not offered to the model but run if it calls them. */
  unofferedTools(
    tools: readonly Tool[],
    agent: AgentRules,
    { editsBy, toolSet, abilities }: Model,
    message: UserInfo,
  ): readonly Tool[] {
    if (!abilities.tools) return [];
    return this.#unoffered(agent, [editsBy, toolSet, message.tools, ...tools], () =>
      selectPermitted(tools, agent, message).filter((tool) => !isOffered(tool, { editsBy, toolSet })),
    );
  }

  /**
   * Returns the task tool if the agent may delegate to one of the agents. Plan and build list the same agents, so that the
   * tools stay when the mode changes; rules refuse the others.
   */
  taskTools(agents: ReadonlyMap<string, Agent>, caller: AgentRules & Pick<Agent, "name">): readonly Tool[] {
    return this.#taskTools(caller, [agents], () => {
      const callers = [caller, ...findPlanPartner(agents, caller)];
      const isCallable = ({ name, mode }: Agent, by: AgentRules) =>
        mode !== "primary" && isPermitted(by, "task", name);
      const all = [...agents.values()];
      if (!all.some((agent) => isCallable(agent, caller))) return [];
      return [taskTool({ agents: all.filter((agent) => callers.some((by) => isCallable(agent, by))) })];
    });
  }

  /** Returns the skills that the agent may load. */
  skills(skills: readonly Skill[], agent: AgentRules): readonly Skill[] {
    return this.#skills(agent, [skills], () =>
      skills.filter(({ name }) => isPermitted(agent, "skill", name)),
    );
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

/** Returns the agent that the caller switches to by a plan tool, if both are primary agents. */
function findPlanPartner(agents: ReadonlyMap<string, Agent>, { name }: Pick<Agent, "name">): Agent[] {
  const partner = name === PLAN_AGENT ? BUILD_AGENT : name === BUILD_AGENT ? PLAN_AGENT : undefined;
  const found = partner === undefined ? undefined : agents.get(partner);
  return found === undefined || found.mode === "subagent" ? [] : [found];
}

function isPermitted(agent: AgentRules, permission: string, name: string): boolean {
  const request = { permission, subjects: [{ text: name }], always: [] };
  return collectRulesets(agent).every((ruleset) => evaluate(request, ruleset).action !== "deny");
}

function collectRulesets({ rules, limits = [], within = [] }: AgentRules): Ruleset[] {
  return [rules, ...limits, ...within];
}

function selectPermitted(tools: readonly Tool[], agent: AgentRules, message: UserInfo): Tool[] {
  const rulesets = collectRulesets(agent);
  return tools.filter((tool) => message.tools?.[tool.name] !== false && !isDenied(tool, rulesets));
}

function isDenied({ name }: Tool, rulesets: readonly Ruleset[]): boolean {
  const alternatives = planTools.includes(name) ? planTools : [getToolPermission(name)];
  return alternatives.every((permission) => rulesets.some((rules) => isHidden(permission, rules)));
}
