import { shortenTitle } from "../../base/text/call-titles.ts";
import { z } from "zod";
import introduction from "../../../prompts/tools/task.md";
import schemas from "../../../schema/tools.json" with { type: "json" };
import type { Agent } from "../../agent/agent.ts";
import { formatTaskNotes } from "./task-report.ts";
import { defineTool, type TaskOutcome, type Tool, ToolFailure, type ToolResult } from "../tool.ts";

/** An agent that a task can name. Hidden agents are not listed for the model. */
type TaskAgent = Pick<Agent, "name" | "description" | "hidden">;

/** Agents listed for the model; others can be called with `@`. */
const agentsLimit = 60;
/** Characters of one agent's description in the list. */
const descriptionLimit = 600;

/** Characters; becomes the title of the child session. */
const descriptionLength = 500;

const inputSchema = z.object({
  description: z.string().min(1).max(descriptionLength).describe("The task in three to five words."),
  prompt: z.string().min(1).describe("Everything that the agent must know to do the task."),
  subagent_type: z.string().describe("The agent's name, as it is listed."),
  task_id: z.string().optional().describe("An earlier task to continue."),
  session_id: z.string().optional().describe("The same as task_id."),
  command: z.string().optional().describe("The command that started the task, if any."),
});

/** Runs one of these agents in a child session. */
export function taskTool({ agents }: { agents: readonly TaskAgent[] }): Tool {
  return defineTool({
    name: "task",
    otherNames: ["agent", "subagent", "delegate", "run_agent", "dispatch_agent", "spawn_agent"],
    aliases: {
      prompt: ["instructions", "message", "task_prompt"],
      subagent_type: ["agent", "agent_type", "subagent", "agent_name"],
      description: ["title", "summary"],
    },
    description: describe(agents),
    input: inputSchema,
    schema: createSchema(agents),
    kind: "think",
    concurrency: "shared",
    async prepare({ description, prompt, subagent_type: agent, command, ...ids }, context) {
      if (!agents.some(({ name }) => name === agent)) throw new ToolFailure(unknownAgent(agent, agents));
      // Some models write an empty one for none.
      const taskId = ids.task_id || ids.session_id || undefined;
      const { tasks } = context;
      return {
        title: shortenTitle(description, ` (@${agent})`),
        locations: [],
        preview: { text: prompt },
        permissions: [
          {
            permission: "task",
            subjects: [{ text: agent }],
            always: [agent],
            requested: tasks.isRequested(agent),
          },
        ],
        run: async (run) =>
          toResult(agent, await tasks.start({ description, prompt, agent, command, taskId }, run)),
      };
    },
  });
}

/** Returns the schema with the names of the agents and without what only the program and habits of models use. */
function createSchema(agents: readonly TaskAgent[]): Record<string, unknown> {
  const { session_id: _, command: __, ...properties } = schemas.task.properties;
  // The user may ask for an agent that is not listed.
  const isListed = agents.length <= agentsLimit && agents.every(({ hidden }) => !hidden);
  const names = isListed ? { enum: agents.map(({ name }) => name) } : {};
  return {
    ...schemas.task,
    properties: { ...properties, subagent_type: { ...properties.subagent_type, ...names } },
  };
}

function describe(all: readonly TaskAgent[]): string {
  const agents = all.filter(({ hidden }) => !hidden);
  const listed = agents.slice(0, agentsLimit).map(({ name, description }) => {
    const line = description.replaceAll(/\s+/g, " ").trim();
    return `- ${name}: ${line.length <= descriptionLimit ? line : `${line.slice(0, descriptionLimit)}…`}`;
  });
  const rest = agents.length - listed.length;
  return [introduction.trimEnd(), ...listed, ...(rest > 0 ? [`(and ${rest} more)`] : [])].join("\n");
}

function unknownAgent(name: string, all: readonly TaskAgent[]): string {
  const agents = all.filter(({ hidden }) => !hidden);
  const names = agents.slice(0, agentsLimit).map((agent) => agent.name);
  const rest = agents.length - names.length;
  return `There is no agent "${name}" for tasks. Use one of these: ${names.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}.`;
}

function toResult(agent: string, outcome: TaskOutcome): ToolResult {
  const { taskId, end, reason, changes, calls, cost, summary, notUndone, activity, model } = outcome;
  const report = outcome.text === "" ? "(The agent wrote no report.)" : outcome.text;
  const notes = formatTaskNotes({ taskId, agent, state: end });
  const metadata = {
    sessionId: taskId,
    agent,
    ...(model && { model }),
    state: end,
    calls,
    cost,
    summary,
    ...(notUndone.length > 0 && { notUndone }),
    ...(activity.length > 0 && { activity }),
  };
  const more = { notes, changes, metadata };
  if (end === "finished") return { status: "completed", output: report, ...more };
  const why = reason ?? "The task ended before it was done.";
  const text = [why, ...(outcome.text === "" ? [] : ["", "Its last message:", report])].join("\n");
  if (end === "cutShort" || end === "stopped") return { status: "completed", output: text, ...more };
  return { status: "failed", error: text, ...more };
}
