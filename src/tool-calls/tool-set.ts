import builtInSchemas from "../../schema/tools.json" with { type: "json" };
import type { Agent } from "../agent/agent.ts";
import { memoizePer } from "../base/memoize.ts";
import type { UserInfo } from "../message/message.ts";
import type { Model, ToolSpec } from "../model/model.ts";
import { evaluate, isHidden, getToolPermission } from "../permission/evaluate.ts";
import type { Ruleset } from "../permission/rule.ts";
import type { Skill } from "../skill/skill.ts";
import type { Tool } from "../tool/tool.ts";

/** Tools that change files, by how a model was trained to do it. Every other tool is for all models. */
const editTools: ReadonlyMap<string, Model["editsBy"]> = new Map([
  ["apply_patch", "patch"],
  ["edit", "replacement"],
  ["multiedit", "replacement"],
  ["write", "replacement"],
]);

/** What decides over an agent's calls. */
type AgentRules = Pick<Agent, "rules" | "limits" | "within">;

// An agent is the same one until its configuration is read anew, and is asked for in each step.
const cachedTools = memoizePer<readonly Tool[]>();
const cachedSpecs = memoizePer<readonly ToolSpec[]>();
const cachedSkills = memoizePer<readonly Skill[]>();

/** The tools that this agent may use with this model for this message, ordered by name so that caches hit. */
export function selectTools(
  tools: readonly Tool[],
  agent: AgentRules,
  { editsBy, abilities }: Model,
  message: UserInfo,
): readonly Tool[] {
  if (!abilities.tools) return [];
  return cachedTools(agent, [editsBy, message.tools, ...tools], () =>
    tools
      .filter(({ name }) => (editTools.get(name) ?? editsBy) === editsBy)
      .filter((tool) => message.tools?.[tool.name] !== false && !isDenied(tool, collectRulesets(agent)))
      .toSorted((left, right) => (left.name < right.name ? -1 : 1)),
  );
}

/** An agent's rules with those for tools of which nobody knows what they do: they stand behind the first default, before all others. */
export function addToolRules(tools: readonly Tool[], { rules }: Pick<Agent, "rules">): Ruleset {
  if (rules[0]?.action !== "allow") return rules;
  const asking = tools.filter(({ asks }) => asks);
  const added = asking.map(({ name }) => ({ permission: name, pattern: "*", action: "ask" }) as const);
  return [...rules.slice(0, 1), ...added, ...rules.slice(1)];
}

/** The skills that this agent may load. */
export function selectSkills(skills: readonly Skill[], agent: AgentRules): readonly Skill[] {
  return cachedSkills(agent, [skills], () => skills.filter(({ name }) => isPermitted(agent, "skill", name)));
}

/** The agents that this one may hand tasks to, hidden ones too. */
export function selectAgents(agents: Iterable<Agent>, caller: AgentRules): Agent[] {
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

/** Tools as the model is told of them. */
export function toToolSpecs(tools: readonly Tool[]): readonly ToolSpec[] {
  return cachedSpecs(tools, [], () =>
    tools.map((tool) => ({
      name: tool.name,
      description: tool.description,
      schema: tool.schema ?? builtInSchema(tool.name),
    })),
  );
}

/** The schemas of built-in tools are made ahead: building and converting them takes longer than a request. */
const schemas: ReadonlyMap<string, Record<string, unknown>> = new Map(Object.entries(builtInSchemas));

function builtInSchema(name: string): Record<string, unknown> {
  const schema = schemas.get(name);
  if (schema === undefined) throw new Error(`schema/tools.json lacks ${name}: run npm run generate`);
  return schema;
}
