import { z } from "zod";
import type { Agent } from "../agent/agent.ts";
import type { UserInfo } from "../message/message.ts";
import type { Model, ToolSpec } from "../model/model.ts";
import { isHidden, permissionOf } from "../permission/evaluate.ts";
import type { Ruleset } from "../permission/rule.ts";
import type { Tool } from "../tool/tool.ts";

/** The tools that this agent may use with this model for this message, ordered by name so that caches hit. */
export function offeredTools(
  tools: readonly Tool[],
  { rules, limits = [] }: Pick<Agent, "rules" | "limits">,
  model: Model,
  message: UserInfo,
): Tool[] {
  if (!model.abilities.tools) return [];
  return tools
    .filter((tool) => message.tools?.[tool.name] !== false && !isDenied(tool, [rules, ...limits]))
    .toSorted((left, right) => (left.name < right.name ? -1 : 1));
}

function isDenied({ name }: Tool, rulesets: readonly Ruleset[]): boolean {
  return rulesets.some((rules) => isHidden(permissionOf(name), rules));
}

/** Tools as the model is told of them; the conversion of each is kept, it is the same for every call. */
export class ToolSpecs {
  readonly #kept = new WeakMap<Tool, ToolSpec>();

  of(tools: readonly Tool[]): ToolSpec[] {
    return tools.map((tool) => this.#spec(tool));
  }

  #spec(tool: Tool): ToolSpec {
    const kept = this.#kept.get(tool);
    if (kept !== undefined) return kept;
    const { $schema: _, ...schema } = z.toJSONSchema(tool.input, { io: "input", unrepresentable: "any" });
    const spec = { name: tool.name, description: tool.description, schema };
    this.#kept.set(tool, spec);
    return spec;
  }
}
