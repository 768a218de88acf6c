import type { Agent } from "../agent/agent.ts";
import { nearest } from "../base/text/nearest.ts";

/** The parts of a session that the command uses. */
export interface AgentsContext {
  readonly agent: Agent;
  readonly project: { readonly agents: ReadonlyMap<string, Agent> };
  readonly settings: { readonly agentNames: readonly string[]; setAgent(name: string): Promise<void> };
}

/** `/agents` and `/agents NAME`. */
export async function runAgents(session: AgentsContext, name: string): Promise<string> {
  const { agent, project, settings } = session;
  if (name === "") return describeAgents(session);
  if (name === agent.name) return `The agent is already ${name}.`;
  if (settings.agentNames.includes(name)) {
    await settings.setAgent(name);
    return `The agent is now ${name}.`;
  }
  if (project.agents.has(name))
    return `${name} is a subagent: write \`@${name}\` in a message to give it a task.`;
  const near = nearest(name, settings.agentNames);
  const hint = near === undefined ? `Agents: ${settings.agentNames.join(", ")}.` : `Did you mean ${near}?`;
  return `Agent "${name}" not found. ${hint}`;
}

function describeAgents({ agent, project, settings }: AgentsContext): string {
  const selectable = settings.agentNames.flatMap((name) => project.agents.get(name) ?? []);
  const subagents = [...project.agents.values()].filter(({ hidden, mode }) => !hidden && mode !== "primary");
  return [
    "**Agents**, changed by `/agents NAME` or the editor's mode:",
    "",
    ...selectable.map(
      ({ name, description }) =>
        `- **${name}**${name === agent.name ? " (in use)" : ""}: ${description.replaceAll(/\s+/g, " ")}`,
    ),
    "",
    "**Subagents**, called by the model or by their name in a message:",
    "",
    ...subagents.map(({ name, description }) => `- \`@${name}\`: ${description.replaceAll(/\s+/g, " ")}`),
  ].join("\n");
}
