import { sha256 } from "../../base/text/hash.ts";
import { isRecord } from "../../base/text/record.ts";
import type { Api } from "../../config/api.ts";
import { carriedText } from "../../message/carried.ts";
import type { Message } from "../../message/message.ts";
import {
  type Attachment,
  type Carried,
  clearedOutput,
  type Part,
  type ProviderMetadata,
  type ReasoningPart,
  type ToolPart,
  visibleOutput,
} from "../../message/part.ts";
import { startsTurn } from "../../message/starts-turn.ts";
import type { Model } from "../model.ts";
import { calledInput, calledName, formatCall, formatResult } from "../answer/written-calls/call-texts.ts";
import { quirksOf, type Quirks } from "../quirks.ts";
import { acceptsMedium } from "../request/media.ts";
import type { Prompt } from "../wires/wire.ts";

export const interruptedCall = "[Tool execution was interrupted]";
export const compactionQuestion = "What did we do so far?";

export interface PromptOptions {
  readonly model: Model;
  readonly api?: Api;
  /** The host of the base URL. */
  readonly host?: string;
  readonly quirks?: Quirks;
  /** Whether the provider rejected thoughts that were sent back. */
  readonly omitsThoughts?: boolean;
}

type PromptMessage = Prompt[number];
type AssistantMessage = Extract<PromptMessage, { role: "assistant" }>;
type AssistantPart = AssistantMessage["content"][number];
type UserPart = Extract<PromptMessage, { role: "user" }>["content"][number];
type ToolMessage = Extract<PromptMessage, { role: "tool" }>;
type ToolResult = Extract<ToolMessage["content"][number], { type: "tool-result" }>;

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
  const { model, api = model.api ?? "chat", omitsThoughts = false } = options;
  const { provider, model: id } = model.ref;
  const { quirks = quirksOf(provider, "", id) } = options;
  const usedIds = new Set<string>();
  const thoughtsStart = findThoughtsStart(messages);
  const prompt = messages.flatMap((message, index) => {
    if (isUnanswered(message, messages[index + 1])) return [];
    const { info, parts } = message;
    if (info.role === "user") return toUserMessage(parts, model);
    const context: StepContext = {
      model,
      owner: { provider, model: id, api, host: options.host },
      quirks,
      callIds: assignCallIds(parts, api === "chat" ? quirks.callId : usualCallId, usedIds),
      isOwn: info.model.provider === provider && info.model.model === id,
      returnsThoughts: index > thoughtsStart,
      omitsThoughts,
    };
    return splitSteps(parts).flatMap((step) => toStepMessages(step, context));
  });
  return model.callsAsText ? mergeUserMessages(prompt) : prompt;
}

/** Merges consecutive user messages: templates without a tool role often require user and assistant to alternate. */
function mergeUserMessages(prompt: Prompt): Prompt {
  const merged: Prompt = [];
  for (const message of prompt) {
    const last = merged.at(-1);
    if (last?.role === "user" && message.role === "user")
      merged[merged.length - 1] = { ...last, content: [...last.content, ...message.content] };
    else merged.push(message);
  }
  return merged;
}

/**
 * Returns the index of the message after which thoughts are sent back: the start of the turn in which earlier messages last
 * changed, because outputs were cleared or a summary replaced messages. Thoughts of earlier turns are omitted from then
 * on and never at another time, because omitting them alone would invalidate the provider's prompt cache.
 */
function findThoughtsStart(messages: readonly Message[]): number {
  const times = messages.flatMap(({ info, parts }) => {
    const summary =
      info.role === "assistant" && info.summary && info.finish === "stop" ? [info.time.created] : [];
    const cleared = parts.flatMap((part) =>
      part.type === "tool" && part.state.status === "completed" ? (part.state.compactedAt ?? []) : [],
    );
    return [...summary, ...cleared];
  });
  const changedAt = times.reduce((newest, time) => Math.max(newest, time), 0);
  return messages.findLastIndex((message) => startsTurn(message) && message.info.time.created <= changedAt);
}

/** Returns whether the message is the question of a compaction that failed or was cancelled. */
function isUnanswered({ info, parts }: Message, next: Message | undefined): boolean {
  if (info.role !== "user" || !parts.some(({ type }) => type === "compaction")) return false;
  return next?.info.role !== "assistant" || next.parts.length === 0;
}

interface StepContext {
  readonly model: Model;
  /** Whose data is sent back. */
  readonly owner: Omit<ProviderMetadata, "data" | "api"> & { readonly api: Api };
  readonly quirks: Quirks;
  /** The ids of calls in the request. */
  readonly callIds: ReadonlyMap<ToolPart, string>;
  /** Whether the model of the request wrote the message. */
  readonly isOwn: boolean;
  /** Whether models that need the thoughts of a turn get those of the message. */
  readonly returnsThoughts: boolean;
  readonly omitsThoughts: boolean;
}

function toUserMessage(parts: readonly Part[], model: Model): Prompt {
  const content = parts.flatMap((part) => toUserParts(part, model));
  return content.length === 0 ? [] : [{ role: "user", content }];
}

function toUserParts(part: Part, model: Model): UserPart[] {
  if (part.type === "text") return part.ignored || part.text === "" ? [] : [text(part.text)];
  if (part.type === "file") return isInlined(part.mime) ? [] : [toMedia(part, model)];
  if (part.type === "compaction") return [text(compactionText(part.carried))];
  if (part.type === "subtask") return [text(`Run this task with the agent ${part.agent}: ${part.prompt}`)];
  return [];
}

function compactionText(carried: Carried | undefined): string {
  return [compactionQuestion, carried === undefined ? "" : carriedText(carried)].filter(Boolean).join("\n\n");
}

/** A message may hold several model calls: each begins with a step-start. */
function splitSteps(parts: readonly Part[]): Part[][] {
  const steps: Part[][] = [[]];
  for (const part of parts) {
    if (part.type === "step-start") steps.push([]);
    else steps.at(-1)?.push(part);
  }
  return steps;
}

function toStepMessages(parts: readonly Part[], context: StepContext): Prompt {
  const { callsAsText } = context.model;
  const calls = parts.filter((part) => part.type === "tool");
  const isChat = context.owner.api === "chat";
  const thoughts = context.omitsThoughts ? [] : parts.filter((part) => part.type === "reasoning");
  const lead = isChat && !context.omitsThoughts ? chatThoughts(parts, thoughts, context) : {};
  const isUnsigned = calls.every((part) => ownData(part, context)?.thoughtSignature === undefined);
  const content = parts.flatMap((part): AssistantPart | AssistantPart[] => {
    if (part.type === "reasoning") return toReasoning(part, thoughts, context);
    if (part.type === "tool")
      return callsAsText ? toTextCall(part) : toCall(part, context, isUnsigned && part === calls[0]);
    if (part.type !== "text" || part.ignored || part.text.trim() === "") return [];
    return withData(text(part.text), "openai", ownData(part, context));
  });
  // No provider accepts a message with only reasoning.
  if (content.every(({ type }) => type === "reasoning")) return [];
  const assistant: AssistantMessage = {
    role: "assistant",
    content: lead.text === undefined ? content : [reasoning(lead.text), ...content],
    ...(lead.fields && { providerOptions: { openaiCompatible: lead.fields } }),
  };
  if (calls.length === 0) return [assistant];
  if (callsAsText) return [assistant, toTextResults(calls, context.model)];
  const results = calls.map((part) => toResult(part, context, isChat ? [] : mediaOf(part, context.model)));
  const media = isChat ? calls.flatMap((part) => mediaOf(part, context.model, true)) : [];
  const answers: Prompt = [assistant, { role: "tool", content: results }];
  return media.length === 0 ? answers : [...answers, { role: "user", content: media }];
}

type Data = NonNullable<PromptMessage["providerOptions"]>[string];

/** Returns the provider's data of a part if it came from the model, API and host of the request. */
function ownData(
  { providerMetadata: from }: Part & { providerMetadata?: ProviderMetadata | undefined },
  { owner }: StepContext,
): Data | undefined {
  const isOwn =
    from?.provider === owner.provider &&
    from.model === owner.model &&
    from.api === owner.api &&
    from.host === owner.host;
  return isOwn ? from.data : undefined;
}

/** Returns reasoning that is sent in its place among the other parts. Chat completions have a field for all of it. */
function toReasoning(
  part: ReasoningPart,
  thoughts: readonly ReasoningPart[],
  context: StepContext,
): AssistantPart[] {
  const data = ownData(part, context);
  const { owner, quirks, returnsThoughts } = context;
  if (data === undefined || !thoughts.includes(part) || owner.api === "chat") return [];
  // Messages: unchanged, with its signature, or as redacted data.
  if (owner.api === "messages") return [withData(reasoning(part.text), "anthropic", data)];
  // Responses: the summaries of an item become one part with its encrypted content, without the id of the item.
  const item = thoughts.filter((other) => ownData(other, context)?.itemId === data.itemId);
  const { reasoningEncryptedContent } = data;
  if (reasoningEncryptedContent !== undefined) {
    const summary = item
      .map((other) => other.text)
      .filter(Boolean)
      .join("\n\n");
    return [withData(reasoning(summary), "openai", { reasoningEncryptedContent })];
  }
  // Open models have plain reasoning, which the SDK sends only if something is there in place of the encrypted content.
  const isPlain = item.every((other) => ownData(other, context)?.reasoningEncryptedContent === undefined);
  const isWanted = quirks.returnsReasoning !== "never" && returnsThoughts && part.text !== "";
  const plain = { itemId: data.itemId, reasoningEncryptedContent: "" };
  return isPlain && isWanted ? [withData(reasoning(part.text), "openai", plain)] : [];
}

/** Chat completions: the thoughts go back in the field in which they came, where the model wants them. */
function chatThoughts(
  parts: readonly Part[],
  thoughts: readonly ReasoningPart[],
  context: StepContext,
): { readonly text?: string; readonly fields?: Data } {
  const { returnsReasoning, returnsReasoningDetails } = context.quirks;
  const hasCalls = parts.some(({ type }) => type === "tool");
  const end = parts.find((part) => part.type === "step-finish");
  const details = end && ownData(end, context);
  if (returnsReasoningDetails && hasCalls && details !== undefined) return { fields: details };
  const isWanted =
    returnsReasoning === "calls" ? hasCalls : returnsReasoning === "turn" && context.returnsThoughts;
  if (!isWanted) return {};
  const own = thoughts.filter((part) =>
    part.providerMetadata === undefined ? context.isOwn : ownData(part, context),
  );
  const text = own.map((part) => part.text).join("");
  // A provider that requires reasoning with calls gets a blank if there is none.
  if (text === "") return returnsReasoning === "calls" ? { text: " " } : {};
  const isField = own.every((part) => ownData(part, context)?.field === "reasoning");
  return isField ? { fields: { reasoning: text } } : { text };
}

function toTextCall(part: ToolPart): AssistantPart[] {
  const written = formatCall(part);
  return written === "" ? [] : [text(written)];
}

/** Returns the results of calls that were exchanged as text. */
function toTextResults(calls: readonly ToolPart[], model: Model): PromptMessage {
  const content = calls.flatMap((part) => [
    text(formatResult(wireName(calledName(part)), textOfOutput(part))),
    ...mediaOf(part, model, true),
  ]);
  return { role: "user", content };
}

/** The first call needs a thought signature; a placeholder is sent if another model made the calls. */
function toCall(part: ToolPart, context: StepContext, needsSignature: boolean): AssistantPart {
  const { thoughtSignature: signs } = context.quirks;
  const own = ownData(part, context)?.thoughtSignature;
  const thoughtSignature = signs && (own ?? (needsSignature ? signs.missing : undefined));
  return {
    type: "tool-call",
    toolCallId: context.callIds.get(part) ?? part.callId,
    toolName: wireName(calledName(part)),
    // The input as sent, so that the model sees its mistake.
    input: wireInput(calledInput(part, isRecord(part.sent?.input) ? part.sent.input : part.state.input)),
    ...(thoughtSignature !== undefined && { providerOptions: { google: { thoughtSignature } } }),
  };
}

function toResult(part: ToolPart, { callIds }: StepContext, media: UserPart[]): ToolResult {
  return {
    type: "tool-result",
    toolCallId: callIds.get(part) ?? part.callId,
    toolName: wireName(calledName(part)),
    output:
      media.length === 0 ? outputOf(part) : { type: "content", value: [text(textOfOutput(part)), ...media] },
  };
}

function outputOf(part: ToolPart): ToolResult["output"] {
  return { type: part.state.status === "completed" ? "text" : "error-text", value: textOfOutput(part) };
}

function textOfOutput({ state }: ToolPart): string {
  if (state.status === "completed")
    return state.compactedAt === undefined ? visibleOutput(state) : clearedOutput;
  return state.status === "error" ? state.error : interruptedCall;
}

/** Returns the media that a tool returned, with a line that names the tool if they are apart from its result. */
function mediaOf({ tool, state }: ToolPart, model: Model, isApart = false): UserPart[] {
  if (state.status !== "completed" || state.compactedAt !== undefined || !state.attachments?.length)
    return [];
  const media = state.attachments.map((one) => toMedia(one, model));
  return isApart ? [text(`What ${wireName(tool)} returned:`), ...media] : media;
}

function toMedia(attachment: Attachment, model: Model): UserPart {
  const { mime, url, filename } = attachment;
  const name = filename === undefined ? "" : ` "${filename}"`;
  if (!acceptsMedium(mime, model)) return text(`[Attached ${mime}${name}: this model cannot see it]`);
  const data = parseBase64(url);
  if (data !== undefined) return filePart(data, mime, filename);
  if (/^https?:/.test(url) && mime.startsWith("image/") && URL.canParse(url)) {
    return filePart(new URL(url), mime, filename);
  }
  return text(`[Attached ${mime}${name}: its content is not available]`);
}

function filePart(data: string | URL, mediaType: string, filename: string | undefined): UserPart {
  const source =
    typeof data === "string" ? ({ type: "data", data } as const) : ({ type: "url", url: data } as const);
  return { type: "file", data: source, mediaType, ...(filename !== undefined && { filename }) };
}

/** Returns whether the content was copied into the message when it was created (text and directories). */
const isInlined = (mime: string): boolean => mime.startsWith("text/") || mime.endsWith("directory");

function parseBase64(url: string): string | undefined {
  const comma = url.indexOf(",");
  if (!url.startsWith("data:") || comma < 0) return undefined;
  const data = url.slice(comma + 1);
  return url.slice(0, comma).endsWith(";base64")
    ? data
    : Buffer.from(decodeURIComponent(data)).toString("base64");
}

/** Replaces arguments that are not an object: providers reject them even if the call failed for that reason. */
function wireInput(input: unknown): Record<string, unknown> {
  return isRecord(input) ? { ...input } : {};
}

/** Replaces invalid tool names: providers reject them even if the call failed for that reason. */
function wireName(tool: string): string {
  return tool.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed";
}

/** Adds data of the provider to a part, under the name that the SDK reads. */
function withData<P extends AssistantPart>(part: P, name: string, data: Data | undefined): P {
  return data === undefined ? part : { ...part, providerOptions: { [name]: data } };
}

const text = (text: string) => ({ type: "text" as const, text });
const reasoning = (text: string) => ({ type: "reasoning" as const, text });

/** Ids of calls that Responses and Messages accept. */
const usualCallId = /^[A-Za-z0-9_-]{1,64}$/;

/** Assigns each call a unique id: the provider's own if it is valid here, otherwise one derived from ours. */
function assignCallIds(parts: readonly Part[], allowed: RegExp, used: Set<string>): StepContext["callIds"] {
  const ids = new Map<ToolPart, string>();
  const isFree = (id: string) => allowed.test(id) && !used.has(id);
  for (const part of parts.filter((one) => one.type === "tool")) {
    const { providerCallId, callId } = part;
    const wished = [providerCallId, callId].find((id) => id !== undefined && isFree(id));
    const id = wished ?? deriveId(callId, isFree);
    used.add(id);
    ids.set(part, id);
  }
  return ids;
}

function deriveId(callId: string, isFree: (id: string) => boolean): string {
  for (let round = 0; ; round++) {
    const hash = sha256(`${round}:${callId}`).slice(0, 9);
    if (isFree(hash)) return hash;
  }
}
