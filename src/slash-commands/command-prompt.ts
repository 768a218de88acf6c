import type { Agent } from "../agent/agent.ts";
import { type FilledPart, fillTemplate } from "../command/template.ts";
import type { Attachment } from "../message/part.ts";
import type { ServerPrompt } from "../mcp/tools/prompts.ts";
import { cutText, outputLimitBytes, outputLimitLines } from "../tool/output-limit.ts";
import type { Tool, ToolContext } from "../tool/tool.ts";
import { resolvePath } from "../workspace/paths.ts";
import type { AgentCallsDeps } from "../tool-calls/agent-calls.ts";
import type { PromptBlock } from "../conversation/prompt-input.ts";
import type { PromptEffect } from "./commands.ts";
import { type FinishedState, EphemeralToolCalls } from "../tool-calls/ephemeral-tool-calls.ts";

/** The prompt of a command, or why there is none. */
export type CommandPrompt =
  | { outcome: "ready"; blocks: PromptBlock[] }
  | { outcome: "refused"; reason: string }
  | { outcome: "cancelled" };

export interface CommandPromptDeps {
  calls: AgentCallsDeps;
  /** The agent that answers the command. */
  agent: Agent;
  tools: readonly Tool[];
}

/** Maximum number of shell commands and files in one command; a command with more is refused. */
const callsLimit = 20;

/** Creates the prompt of a command. An empty prompt is refused. */
export async function createCommandPrompt(
  deps: CommandPromptDeps,
  effect: PromptEffect,
  typed: string,
): Promise<CommandPrompt> {
  const prompt = await createPrompt(deps, effect, typed);
  if (prompt.outcome !== "ready" || prompt.blocks.some(hasContent)) return prompt;
  return { outcome: "refused", reason: "Its prompt is empty." };
}

function hasContent(block: PromptBlock): boolean {
  return block.type !== "text" || block.text.trim() !== "";
}

async function createPrompt(
  deps: CommandPromptDeps,
  effect: PromptEffect,
  typed: string,
): Promise<CommandPrompt> {
  switch (effect.kind) {
    case "skill":
      return skillPrompt(deps, effect.skill, typed);
    case "template":
      return templatePrompt(
        deps,
        typeof effect.template === "string" ? effect.template : await effect.template(),
        typed,
      );
    case "server-prompt":
      return serverPrompt(deps, effect.prompt, typed);
  }
}

async function serverPrompt(
  { calls: { project, context } }: CommandPromptDeps,
  prompt: ServerPrompt,
  typed: string,
): Promise<CommandPrompt> {
  const filled = await prompt.fill(typed, context.signal);
  if (filled.outcome !== "filled") return filled;
  const text = cutText(project.secrets.redact(filled.text), outputLimitLines, outputLimitBytes, "head");
  const note = text.length < filled.text.length ? "\n\n[The server's text was cut here.]" : "";
  const block: PromptBlock = { type: "text", text: `${text}${note}`, audience: "model" };
  return { outcome: "ready", blocks: [block, ...filled.attachments.flatMap(mediaBlocks)] };
}

/** Fills the template. Its shell commands and files need the same permissions as calls of a model. */
async function templatePrompt(
  { calls, agent, tools }: CommandPromptDeps,
  template: string,
  typed: string,
): Promise<CommandPrompt> {
  const { context } = calls;
  const filled = await omitUnknownFiles(fillTemplate(template, typed), context);
  if (filled.filter(({ kind }) => kind !== "text").length > callsLimit)
    return { outcome: "refused", reason: `It runs and attaches more than ${callsLimit} things.` };
  const ephemeral = new EphemeralToolCalls(calls, agent, tools);
  const texts: string[] = [];
  const attached: PromptBlock[] = [];
  for (const segment of filled) {
    if (segment.kind === "text") {
      texts.push(segment.text);
      continue;
    }
    const state = await ephemeral.run(...toCall(segment), context.signal);
    const refusal = toRefusal(state);
    if (refusal !== undefined) return refusal;
    texts.push(segment.kind === "shell" ? textOf(state) : `@${segment.path}`);
    if (segment.kind === "file") attached.push(...attachedBlocks(segment.path, state));
  }
  const text = texts.join("").trim();
  return { outcome: "ready", blocks: [{ type: "text", text, audience: "model" }, ...attached] };
}

/** Loads a skill with the skill tool. */
async function skillPrompt(
  { calls, agent, tools }: CommandPromptDeps,
  name: string,
  typed: string,
): Promise<CommandPrompt> {
  const ephemeral = new EphemeralToolCalls(calls, agent, tools);
  const state = await ephemeral.run("skill", { name }, calls.context.signal);
  const refusal = toRefusal(state);
  if (refusal !== undefined) return refusal;
  if (state.status === "error") return { outcome: "refused", reason: state.error };
  const text = ["Follow this skill.", state.output, typed].filter((part) => part !== "").join("\n\n");
  return { outcome: "ready", blocks: [{ type: "text", text, audience: "model" }] };
}

/** Turns mentions that are not existing files into text: user names, packages, agents. */
async function omitUnknownFiles(
  filled: readonly FilledPart[],
  { workspace }: ToolContext,
): Promise<FilledPart[]> {
  return Promise.all(
    filled.map(async (segment): Promise<FilledPart> => {
      if (segment.kind !== "file") return segment;
      const isKnown = await resolvePath(segment.path, workspace).then(
        ({ kind }) => kind === "file" || kind === "directory",
        () => false,
      );
      return isKnown ? segment : { kind: "text", text: `@${segment.path}` };
    }),
  );
}

function toCall(segment: Exclude<FilledPart, { kind: "text" }>): [tool: string, input: unknown] {
  return segment.kind === "shell"
    ? ["bash", { command: segment.command }]
    : ["read", { filePath: segment.path }];
}

/** A call that was not permitted refuses the whole command. */
function toRefusal(state: FinishedState): Exclude<CommandPrompt, { outcome: "ready" }> | undefined {
  if (state.status === "completed") return undefined;
  switch (state.reason) {
    case "cancelled":
      return { outcome: "cancelled" };
    case "denied":
    case "rejected":
      return { outcome: "refused", reason: state.error };
    default:
      return undefined;
  }
}

function textOf(state: FinishedState): string {
  return state.status === "completed" ? state.output.trimEnd() : state.error;
}

function attachedBlocks(path: string, state: FinishedState): PromptBlock[] {
  const text =
    state.status === "completed"
      ? `<attached path="${path}">\n${state.output}\n</attached>`
      : `${path} could not be read: ${state.error}`;
  const media = state.status === "completed" ? (state.attachments ?? []).flatMap(mediaBlocks) : [];
  return [{ type: "text", text, audience: "model" }, ...media];
}

function mediaBlocks({ url, mime, filename }: Attachment): PromptBlock[] {
  const data = /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1];
  return data === undefined ? [] : [{ type: "media", mime, data, ...(filename && { name: filename }) }];
}
