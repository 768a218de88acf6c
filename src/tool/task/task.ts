import { shortenTitle } from "../../base/text/call-titles.ts";
import { z } from "zod";
import introduction from "../../../prompts/tools/task.md";
import schemas from "../../../schema/tools.json" with { type: "json" };
import type { Agent } from "../../agent/agent.ts";
import { runInBackground } from "./background-task.ts";
import { toResult } from "./task-result.ts";
import { defineTool, type Tool, type ToolContext, ToolFailure } from "../tool.ts";

/** An agent that a task can name. Hidden agents are not listed for the model. */
type TaskAgent = Pick<Agent, "name" | "description" | "hidden">;

/** Agents listed for the model; others can be called with `@`. */
const agentsLimit = 60;
/** Characters of one agent's description in the list. */
const descriptionLimit = 600;

/** Characters; becomes the title of the child session. */
const descriptionLength = 500;

const inputSchema = z.object({
  description: z.string().min(1).max(descriptionLength).describe("Three to five words."),
  prompt: z.string().min(1).describe("All that the agent must know."),
  subagent_type: z.string().describe("A listed agent."),
  task_id: z.string().optional().describe("Continue this task."),
  session_id: z.string().optional().describe("The same as task_id."),
  background: z.boolean().optional().describe("As a job."),
  worktree: z.boolean().optional().describe("In a git worktree."),
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
      background: ["run_in_background", "is_background", "async"],
      worktree: ["isolated", "in_worktree", "use_worktree"],
    },
    description: describe(agents),
    input: inputSchema,
    schema: createSchema(agents),
    kind: "think",
    concurrency: "shared",
    async prepare(
      { description, prompt, subagent_type: agent, command, background, worktree, ...ids },
      context,
    ) {
      if (!agents.some(({ name }) => name === agent)) throw new ToolFailure(unknownAgent(agent, agents));
      // Some models write an empty one for none.
      const taskId = ids.task_id || ids.session_id || undefined;
      const { tasks } = context;
      if (background === true) assertCanStart(context);
      const title = shortenTitle(description, ` (@${agent})`);
      const hasWorktree = worktree ?? false;
      const task = { description, prompt, agent, command, taskId, hasWorktree, trace: context.trace };
      return {
        title,
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
        run: async (run) => {
          if (background === true) {
            // Calls of the same step may have started jobs meanwhile.
            assertCanStart(context);
            return runInBackground(task, title, context, run);
          }
          const { ended } = await tasks.start(task, run);
          return toResult(agent, await ended);
        },
      };
    },
  });
}

/** Throws {@link ToolFailure} if no more tasks can run in the background. */
function assertCanStart({ jobs }: ToolContext): void {
  const refusal = jobs.findRefusal("task");
  if (refusal !== undefined) throw new ToolFailure(`Not started. ${refusal}`);
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
