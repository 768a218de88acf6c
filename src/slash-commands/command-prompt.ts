import type { Agent } from "../agent/agent.ts";
import { type Filled, fillTemplate } from "../command/template.ts";
import type { Attachment } from "../message/part.ts";
import type { ServerPrompt } from "../mcp/tools/prompts.ts";
import { cutText, outputLimitBytes, outputLimitLines } from "../tool/output-limit.ts";
import type { Tool, ToolContext } from "../tool/tool.ts";
import { resolvePath } from "../workspace/paths.ts";
import { type AgentCallsDeps, type CallDeps, createCallDeps } from "../tool-calls/agent-calls.ts";
import type { PromptBlock } from "../conversation/prompt-input.ts";
import type { PromptEffect } from "./commands.ts";
import { type FinishedState, EphemeralToolCalls } from "../tool-calls/ephemeral-tool-calls.ts";

/** What a command says to the model, or why it says nothing. */
export type CommandPrompt =
  | { outcome: "ready"; blocks: PromptBlock[] }
  | { outcome: "refused"; reason: string }
  | { outcome: "cancelled" };

export interface CommandPromptDeps extends AgentCallsDeps {
  /** Who answers the command. */
  agent: Agent;
  tools: readonly Tool[];
}

/** What its calls go by. */
interface RunDeps extends CallDeps {
  tools: readonly Tool[];
  signal: AbortSignal;
}

/** Command lines and files of one command; more are not run or attached. */
const callsLimit = 20;

/** What a command comes to. A model is not asked nothing. */
export async function createCommandPrompt(
  deps: CommandPromptDeps,
  effect: PromptEffect,
  typed: string,
): Promise<CommandPrompt> {
  const prompt = await createPrompt(deps, effect, typed);
  if (prompt.outcome !== "ready" || prompt.blocks.some(hasContent)) return prompt;
  return { outcome: "refused", reason: "It has no text for the model." };
}

function hasContent(block: PromptBlock): boolean {
  return block.type !== "text" || block.text.trim() !== "";
}

function createPrompt(deps: CommandPromptDeps, effect: PromptEffect, typed: string): Promise<CommandPrompt> {
  const { agent, tools, context } = deps;
  const run = { ...createCallDeps(deps, agent), tools, signal: context.signal };
  switch (effect.kind) {
    case "skill":
      return skillPrompt(run, effect.skill, typed);
    case "template":
      return templatePrompt(run, effect.template, typed);
    case "server-prompt":
      return serverPrompt(run, effect.prompt, typed);
  }
}

async function serverPrompt(
  { signal, secrets }: RunDeps,
  prompt: ServerPrompt,
  typed: string,
): Promise<CommandPrompt> {
  const filled = await prompt.fill(typed, signal);
  if (filled.outcome !== "filled") return filled;
  const text = cutText(secrets.redact(filled.text), outputLimitLines, outputLimitBytes, "head");
  const note = text.length < filled.text.length ? "\n\n[The server's text goes on; it was cut here.]" : "";
  const said: PromptBlock = { type: "text", text: `${text}${note}`, audience: "model" };
  return { outcome: "ready", blocks: [said, ...filled.attachments.flatMap(mediaBlocks)] };
}

/** Fills the template; what it runs and reads is asked for like the calls of a model. */
async function templatePrompt(deps: RunDeps, template: string, typed: string): Promise<CommandPrompt> {
  const filled = await omitUnknownFiles(fillTemplate(template, typed), deps.context);
  if (filled.filter(({ kind }) => kind !== "text").length > callsLimit)
    return { outcome: "refused", reason: `It runs and attaches more than ${callsLimit} things.` };
  const calls = new EphemeralToolCalls(deps, deps.tools);
  const texts: string[] = [];
  const attached: PromptBlock[] = [];
  for (const piece of filled) {
    if (piece.kind === "text") {
      texts.push(piece.text);
      continue;
    }
    const state = await calls.run(...toCall(piece), deps.signal);
    const refusal = toRefusal(state);
    if (refusal !== undefined) return refusal;
    texts.push(piece.kind === "shell" ? textOf(state) : `@${piece.path}`);
    if (piece.kind === "file") attached.push(...attachedBlocks(piece.path, state));
  }
  const text = texts.join("").trim();
  return { outcome: "ready", blocks: [{ type: "text", text, audience: "model" }, ...attached] };
}

/** Loads a skill, as the model would. */
async function skillPrompt(deps: RunDeps, name: string, typed: string): Promise<CommandPrompt> {
  const state = await new EphemeralToolCalls(deps, deps.tools).run("skill", { name }, deps.signal);
  const refusal = toRefusal(state);
  if (refusal !== undefined) return refusal;
  if (state.status === "error") return { outcome: "refused", reason: state.error };
  const text = ["Follow this skill.", state.output, typed].filter((part) => part !== "").join("\n\n");
  return { outcome: "ready", blocks: [{ type: "text", text, audience: "model" }] };
}

/** What looks like a file and is none is text: a person's name, a package, an agent. */
async function omitUnknownFiles(filled: readonly Filled[], { workspace }: ToolContext): Promise<Filled[]> {
  return Promise.all(
    filled.map(async (piece): Promise<Filled> => {
      if (piece.kind !== "file") return piece;
      const isKnown = await resolvePath(piece.path, workspace).then(
        ({ kind }) => kind === "file" || kind === "directory",
        () => false,
      );
      return isKnown ? piece : { kind: "text", text: `@${piece.path}` };
    }),
  );
}

function toCall(piece: Exclude<Filled, { kind: "text" }>): [tool: string, input: unknown] {
  return piece.kind === "shell" ? ["bash", { command: piece.command }] : ["read", { filePath: piece.path }];
}

/** Half a prompt is none: what was not permitted ends the command. */
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
