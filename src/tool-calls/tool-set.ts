import builtInSchemas from "../../schema/tools.json" with { type: "json" };
import type { Agent } from "../agent/agent.ts";
import { memoizePer } from "../base/memoize.ts";
import type { UserInfo } from "../message/message.ts";
import type { Model, ToolSpec } from "../model/model.ts";
import { evaluate, isHidden, getToolPermission } from "../permission/evaluate.ts";
import type { Ruleset } from "../permission/rule.ts";
import type { Skill } from "../skill/skill.ts";
import { taskTool } from "../tool/task.ts";
import type { Tool } from "../tool/tool.ts";

/** Editing tools by the edit format that models were trained on. All other tools are for all models. */
const editTools: ReadonlyMap<string, Model["editsBy"]> = new Map([
  ["apply_patch", "patch"],
  ["edit", "replacement"],
  ["multiedit", "replacement"],
  ["write", "replacement"],
]);

/** The rules that decide an agent's calls. */
type AgentRules = Pick<Agent, "rules" | "limits" | "within">;

/**
 * Selects what agents offer to models. Cached for one session, because each step asks for it: agents are identical
 * objects until the configuration is reloaded.
 */
export class AgentOffers {
  readonly #tools = memoizePer<readonly Tool[]>();
  readonly #taskTools = memoizePer<readonly Tool[]>();
  readonly #specs = memoizePer<readonly ToolSpec[]>();
  readonly #skills = memoizePer<readonly Skill[]>();

  /** Returns the tools that the agent may use with the model for the message, sorted so that prompt caches hit. */
  tools(
    tools: readonly Tool[],
    agent: AgentRules,
    { editsBy, abilities }: Model,
    message: UserInfo,
  ): readonly Tool[] {
    if (!abilities.tools) return [];
    return this.#tools(agent, [editsBy, message.tools, ...tools], () =>
      tools
        .filter(({ name }) => (editTools.get(name) ?? editsBy) === editsBy)
        .filter((tool) => message.tools?.[tool.name] !== false && !isDenied(tool, collectRulesets(agent)))
        .toSorted((left, right) => (left.name < right.name ? -1 : 1)),
    );
  }

  /** Returns the task tool if the agent may delegate to one of the agents. */
  taskTools(agents: ReadonlyMap<string, Agent>, caller: AgentRules): readonly Tool[] {
    return this.#taskTools(caller, [agents], () => {
      const callable = selectAgents(agents.values(), caller);
      return callable.length === 0 ? [] : [taskTool({ agents: callable })];
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
        schema: tool.schema ?? builtInSchema(tool.name),
      })),
    );
  }
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

/** Returns the agents that the caller may delegate to, including hidden ones. */
function selectAgents(agents: Iterable<Agent>, caller: AgentRules): Agent[] {
  return [...agents].filter(({ name, mode }) => mode !== "primary" && isPermitted(caller, "task", name));
}

function isPermitted(agent: AgentRules, permission: string, name: string): boolean {
  const request = { permission, subjects: [{ text: name }], always: [] };
  return collectRulesets(agent).every((ruleset) => evaluate(request, ruleset).action !== "deny");
}

function collectRulesets({ rules, limits = [], within = [] }: AgentRules): Ruleset[] {
  return [rules, ...limits, ...within];
}

function isDenied({ name }: Tool, rulesets: readonly Ruleset[]): boolean {
  return rulesets.some((rules) => isHidden(getToolPermission(name), rules));
}

/** Schemas of built-in tools, generated at build time: converting them at runtime takes longer than a request. */
const schemas: ReadonlyMap<string, Record<string, unknown>> = new Map(Object.entries(builtInSchemas));

function builtInSchema(name: string): Record<string, unknown> {
  const schema = schemas.get(name);
  if (schema === undefined) throw new Error(`schema/tools.json lacks ${name}: run npm run generate`);
  return schema;
}
