import { carriedText } from "../../message/carried.ts";
import type { Message } from "../../message/message.ts";
import type { Part } from "../../message/part.ts";
import { formatCall, formatResult } from "../answer/written-calls/call-texts.ts";
import type { Model } from "../model.ts";
import { toMediaPart } from "../request/media.ts";
import type { Prompt } from "../wires/wire.ts";
import { type AssistantPart, ownData, type PromptOptions, reasoning, text, withData } from "./parts.ts";
import { chatThoughts, findThoughtsStart, type ThoughtContext, toReasoning } from "./thoughts.ts";
import { toValidCalls, toValidName, type ValidCall } from "./valid-calls.ts";

type PromptMessage = Prompt[number];
type UserPart = Extract<PromptMessage, { role: "user" }>["content"][number];
type ToolResult = Extract<PromptMessage, { role: "tool" }>["content"][number];

const compactionQuestion = "What did we do so far?";
const lostOpening = "[This message could not be read from disk.]";

/**
 * Converts the visible transcript to messages for a model.
 *
 * - Every call has exactly one result, which immediately follows its message.
 * - Media that the model does not accept become a line of text.
 * - Chat completions accept only text as the result of a tool: media follow the results in a user message.
 * - If the model writes its calls as text, calls are text of the assistant and results text of the user.
 * - A provider's data is sent only to the model, API and host that it came from; see docs/models.md.
 */
export function toPrompt(messages: readonly Message[], options: PromptOptions): Prompt {
  const { model, owner, quirks } = options;
  const isChat = owner.api === "chat";
  const calls = toValidCalls(messages, isChat ? quirks.callId : usualCallId);
  const thoughtsStart = findThoughtsStart(messages);
  const prompt = messages.flatMap((message, index) => {
    const { info, parts } = message;
    if (isUnanswered(message, messages[index + 1])) return [];
    if (info.role === "user") return toUserMessage(parts.flatMap((part) => toUserParts(part, model)));
    const isOwn = info.model.provider === owner.provider && info.model.model === owner.model;
    const context = { ...options, isChat, calls, isOwn, returnsThoughts: index > thoughtsStart };
    return splitSteps(parts).flatMap((step) => toStepMessages(step, context));
  });
  return orderRoles(prompt, options);
}

/** Makes the order of roles one that providers and chat templates accept. */
function orderRoles(prompt: Prompt, { model, owner, quirks }: PromptOptions): Prompt {
  const answersTools = owner.api === "chat" && quirks.answersTools;
  const ordered: Prompt = [];
  for (const message of prompt) {
    const last = ordered.at(-1);
    const isUser = message.role === "user";
    // Providers reject conversations that begin with an answer.
    if (last === undefined && !isUser) ordered.push({ role: "user", content: [text(lostOpening)] });
    if (answersTools && isUser && last?.role === "tool")
      ordered.push({ role: "assistant", content: [text("Done.")] });
    // Templates without a tool role often require user and assistant to alternate.
    if (model.callsAsText && isUser && last?.role === "user")
      ordered.splice(-1, 1, { ...last, content: [...last.content, ...message.content] });
    else ordered.push(message);
  }
  return ordered;
}

/** Returns whether the message is the question of a compaction that failed or was cancelled. */
function isUnanswered({ info, parts }: Message, next: Message | undefined): boolean {
  if (info.role !== "user" || !parts.some(({ type }) => type === "compaction")) return false;
  return next?.info.role !== "assistant" || next.parts.length === 0;
}

interface StepContext extends ThoughtContext {
  readonly isChat: boolean;
  readonly calls: ReadonlyMap<Part, ValidCall>;
}

const toUserMessage = (content: UserPart[]): Prompt =>
  content.length === 0 ? [] : [{ role: "user", content }];

function toUserParts(part: Part, model: Model): UserPart[] {
  if (part.type === "text") return part.ignored || part.text === "" ? [] : [text(part.text)];
  if (part.type === "file") return isInlined(part.mime) ? [] : [toMediaPart(part, model)];
  if (part.type === "compaction") {
    const carried = part.carried === undefined ? "" : carriedText(part.carried);
    return [text(carried === "" ? compactionQuestion : `${compactionQuestion}\n\n${carried}`)];
  }
  if (part.type === "subtask") return [text(`Run this task with the agent ${part.agent}: ${part.prompt}`)];
  return [];
}

/** A message may hold several model calls: each begins with a step-start. */
function splitSteps(parts: readonly Part[]): Part[][] {
  const steps: Part[][] = [];
  for (const part of parts) {
    if (part.type === "step-start" || steps.length === 0) steps.push([part]);
    else steps.at(-1)?.push(part);
  }
  return steps;
}

function toStepMessages(parts: readonly Part[], context: StepContext): Prompt {
  const { isChat } = context;
  const calls = parts.map((part) => context.calls.get(part)).filter((call) => call !== undefined);
  const isUnsigned = calls.every(({ part }) => ownData(part, context)?.thoughtSignature === undefined);
  const content: AssistantPart[] = [];
  for (const part of parts) {
    const call = context.calls.get(part);
    if (call !== undefined) content.push(...toCall(call, context, isUnsigned && call === calls[0]));
    else if (part.type === "reasoning") content.push(...toReasoning(part, parts, context));
    else if (part.type === "text" && !part.ignored && part.text.trim() !== "")
      content.push(withData(text(part.text), "openai", ownData(part, context)));
  }
  // No provider accepts a message with only reasoning.
  if (content.every(({ type }) => type === "reasoning")) return [];
  const lead = isChat ? chatThoughts(parts, context) : {};
  const assistant: PromptMessage = {
    role: "assistant",
    content: lead.text === undefined ? content : [reasoning(lead.text), ...content],
    ...(lead.fields && { providerOptions: { openaiCompatible: lead.fields } }),
  };
  return [assistant, ...toResults(calls, context)];
}

/** Returns the results of calls, as text of the user if calls are exchanged as text. */
function toResults(calls: readonly ValidCall[], { isChat, model }: StepContext): Prompt {
  if (calls.length === 0) return [];
  if (model.callsAsText)
    return toUserMessage(
      calls.flatMap((call) => [text(formatResult(call.name, call.output)), ...namedMediaOf(call, model)]),
    );
  const content = calls.map((call) => toResult(call, isChat ? [] : mediaOf(call, model)));
  const apart = isChat ? calls.flatMap((call) => namedMediaOf(call, model)) : [];
  return [{ role: "tool", content }, ...toUserMessage(apart)];
}

function toResult({ part, id, name, output }: ValidCall, media: UserPart[]): ToolResult {
  const type = part.state.status === "completed" ? "text" : "error-text";
  return {
    type: "tool-result",
    toolCallId: id,
    toolName: name,
    output: media.length > 0 ? { type: "content", value: [text(output), ...media] } : { type, value: output },
  };
}

/** The first call needs a thought signature; a placeholder is sent if another model made the calls. */
function toCall(call: ValidCall, context: StepContext, needsSignature: boolean): AssistantPart[] {
  const { model, quirks } = context;
  const { part, id, name, input } = call;
  if (model.callsAsText) return [text(formatCall(part))].filter((written) => written.text !== "");
  const signs = quirks.thoughtSignature;
  const own = ownData(part, context)?.thoughtSignature;
  const signature = signs && (own ?? (needsSignature ? signs.missing : undefined));
  const data = signature === undefined ? undefined : { thoughtSignature: signature };
  return [withData({ type: "tool-call", toolCallId: id, toolName: name, input }, "google", data)];
}

function mediaOf({ part: { state } }: ValidCall, model: Model): UserPart[] {
  if (state.status !== "completed" || state.compactedAt !== undefined) return [];
  return (state.attachments ?? []).map((one) => toMediaPart(one, model));
}

/** Returns the media that a tool returned, with a line that names the tool: they are apart from its result. */
function namedMediaOf(call: ValidCall, model: Model): UserPart[] {
  const media = mediaOf(call, model);
  return media.length === 0 ? [] : [text(`What ${toValidName(call.part.tool)} returned:`), ...media];
}

/** Returns whether the content was copied into the message when it was created (text and directories). */
const isInlined = (mime: string): boolean => mime.startsWith("text/") || mime.endsWith("directory");

/** Ids of calls that Responses and Messages accept. */
const usualCallId = /^[A-Za-z0-9_-]{1,64}$/;
