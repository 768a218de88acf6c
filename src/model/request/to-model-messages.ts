import { createHash } from "node:crypto";
import type { AssistantContent, FilePart, ModelMessage, ToolModelMessage, UserContent } from "ai";
import { isRecord } from "../../base/text/record.ts";
import { carriedText } from "../../message/carried.ts";
import type { Message, MessageInfo } from "../../message/message.ts";
import {
  type Attachment,
  type Carried,
  clearedOutput,
  type Part,
  type ReasoningDetail,
  type ToolPart,
  visibleOutput,
} from "../../message/part.ts";
import { mediumKinds, acceptsMedium } from "./media.ts";
import type { Model } from "../model.ts";
import { quirksOf, type Quirks } from "../quirks.ts";

export const interruptedCall = "[Tool execution was interrupted]";
export const compactionQuestion = "What did we do so far?";

export interface ModelMessagesOptions {
  readonly model: Model;
  readonly quirks?: Quirks;
  /** Cached conversions of the same conversation for the same model. */
  readonly conversions?: Conversions;
}

type AssistantPart = Exclude<AssistantContent, string>[number];
type UserPart = Exclude<UserContent, string>[number];
type ToolResult = ToolModelMessage["content"][number];

/** A message of the transcript, converted for a model. */
export interface ConvertedMessage {
  /** Empty if the message is not sent. */
  readonly messages: readonly ModelMessage[];
  /** The messages in the provider's format, once the SDK has converted them. */
  written?: readonly unknown[];
}

/**
 * Converts the visible transcript to messages for a model, one entry per message.
 *
 * - Every call has exactly one result, which immediately follows its message.
 * - Media that the model does not accept become a line of text.
 * - Media that a tool returned follow the results in a user message: OpenAI-compatible providers take only text as the
 *   result of a tool.
 */
export function toModelMessages(
  messages: readonly Message[],
  {
    model,
    quirks = quirksOf(model.ref.provider, "", model.ref.model),
    conversions = new Conversions(),
  }: ModelMessagesOptions,
): ConvertedMessage[] {
  const sent = messages.filter((message, index) => !isUnanswered(message, messages[index + 1]));
  return conversions.of(sent, { model, quirks });
}

/** Returns whether the message is the question of a compaction that failed or was cancelled. */
function isUnanswered({ info, parts }: Message, next: Message | undefined): boolean {
  if (info.role !== "user" || !parts.some(({ type }) => type === "compaction")) return false;
  return next?.info.role !== "assistant" || next.parts.length === 0;
}

interface Conversion {
  readonly message: Message;
  readonly info: MessageInfo;
  readonly parts: readonly Part[];
  /** Ids of the calls among the parts. */
  readonly callIds: CallIds;
  /** The kinds of media that the model accepted at the time. */
  readonly media: string;
  readonly bringsThoughts: boolean;
  readonly converted: ConvertedMessage;
}

/** The ids of calls in the request. */
type CallIds = ReadonlyMap<ToolPart, string>;

/**
 * Caches the converted messages of a conversation. The whole conversation is sent with each step; without a cache, the
 * time and the garbage of a step would grow with its length.
 */
export class Conversions {
  readonly #known: Conversion[] = [];
  /** Call ids in use. */
  readonly #usedIds = new Set<string>();

  /** Converts all messages from the first changed one on, since call ids depend on earlier messages. */
  of(
    messages: readonly Message[],
    { model, quirks }: Pick<MessageContext, "model" | "quirks">,
  ): ConvertedMessage[] {
    const media = mediumKinds.filter((medium) => model.abilities[medium]).join();
    const lastQuestion = messages.findLastIndex(({ info }) => info.role === "user");
    for (const [index, message] of messages.entries()) {
      const bringsThoughts = quirks.returnsReasoning === "turn" && index > lastQuestion;
      const known = this.#known[index];
      if (known !== undefined && isUnchanged(known, message, { media, bringsThoughts })) continue;
      this.#forgetFrom(index);
      const callIds = assignCallIds(message, quirks, this.#usedIds);
      const { info } = message;
      const converted = { messages: toMessages(message, { model, quirks, callIds, bringsThoughts }) };
      const parts = [...message.parts];
      this.#known.push({ message, info, parts, callIds, media, bringsThoughts, converted });
    }
    this.#forgetFrom(messages.length);
    return this.#known.map(({ converted }) => converted);
  }

  #forgetFrom(index: number): void {
    for (const { callIds } of this.#known.splice(index))
      for (const id of callIds.values()) this.#usedIds.delete(id);
  }
}

/** Compares by reference: changed infos and parts are replaced. Only streaming text is mutated, and it is never sent. */
function isUnchanged(
  known: Conversion,
  message: Message,
  { media, bringsThoughts }: Pick<Conversion, "media" | "bringsThoughts">,
): boolean {
  if (known.message !== message || known.info !== message.info) return false;
  if (known.media !== media || known.bringsThoughts !== bringsThoughts) return false;
  if (known.parts.length !== message.parts.length) return false;
  let at = 0;
  for (const part of message.parts) if (part !== known.parts[at++]) return false;
  return true;
}

function toMessages(message: Message, context: MessageContext): ModelMessage[] {
  if (message.info.role === "user") return toUserMessage(message, context.model);
  const isOwn = isSameModel(message, context.model);
  return splitSteps(message.parts).flatMap((parts) => toStepMessages(parts, { ...context, isOwn }));
}

interface MessageContext {
  readonly model: Model;
  readonly quirks: Quirks;
  readonly callIds: CallIds;
  /** Whether reasoning is sent back: the message is part of the running turn, and the model wants it. */
  readonly bringsThoughts: boolean;
}

interface StepContext extends MessageContext {
  /** Whether the model of this request wrote the message. */
  readonly isOwn: boolean;
}

function toUserMessage(message: Message, model: Model): ModelMessage[] {
  const content = message.parts.flatMap((part) => toUserParts(part, model));
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

function toStepMessages(parts: readonly Part[], context: StepContext): ModelMessage[] {
  const content: AssistantPart[] = [];
  const results: ToolResult[] = [];
  const media: UserPart[] = [];
  const calls = parts.filter((part) => part.type === "tool");
  const signatures = new Signatures(calls, context);
  for (const part of parts) {
    if (part.type === "text" && !part.ignored && part.text.trim() !== "") content.push(text(part.text));
    if (part.type === "tool") {
      const { call, result } = toCall(part, context, signatures);
      content.push(call);
      results.push(result);
      media.push(...mediaOf(part, context.model));
    }
  }
  // No provider accepts a message with only reasoning.
  if (content.length === 0) return [];
  const details = calls.length > 0 ? pickReasoningDetails(parts, context) : undefined;
  const reasoning = details === undefined ? pickReasoning(parts, calls.length > 0, context) : [];
  const assistant: ModelMessage = {
    role: "assistant",
    content: [...reasoning, ...content],
    ...(details !== undefined && { providerOptions: { openaiCompatible: { reasoning_details: details } } }),
  };
  if (results.length === 0) return [assistant];
  const tool: ModelMessage = { role: "tool", content: results };
  return media.length === 0 ? [assistant, tool] : [assistant, tool, { role: "user", content: media }];
}

/** Returns the reasoning to send back. If the provider requires it, calls of another model get a blank instead. */
function pickReasoning(
  parts: readonly Part[],
  hasCalls: boolean,
  { quirks, isOwn, bringsThoughts }: StepContext,
): AssistantPart[] {
  const { returnsReasoning } = quirks;
  const isWanted = returnsReasoning === "calls" ? hasCalls : bringsThoughts;
  if (!isWanted) return [];
  const thoughts = parts.flatMap((part) =>
    isOwn && part.type === "reasoning" && part.text !== "" ? [part.text] : [],
  );
  if (thoughts.length > 0) return thoughts.map((thought) => ({ type: "reasoning", text: thought }));
  return returnsReasoning === "calls" ? [{ type: "reasoning", text: " " }] : [];
}

/** Returns the `reasoning_details` of the same model; another model cannot read them. */
function pickReasoningDetails(
  parts: readonly Part[],
  { quirks, isOwn }: StepContext,
): ReasoningDetail[] | undefined {
  if (!quirks.returnsReasoningDetails || !isOwn) return undefined;
  return parts.find((part) => part.type === "step-finish")?.reasoningDetails;
}

/**
 * The thought signatures sent back with the calls of a step. The first call needs one; if there is none because another
 * model made the calls, a placeholder is sent.
 */
class Signatures {
  readonly #missing: string | undefined;
  readonly #isSent: boolean;
  #isFirst = true;

  constructor(calls: readonly ToolPart[], { quirks, isOwn }: StepContext) {
    this.#isSent = isOwn && quirks.thoughtSignature !== undefined;
    const hasOwn = this.#isSent && calls.some(({ signature }) => signature !== undefined);
    this.#missing = hasOwn ? undefined : quirks.thoughtSignature?.missing;
  }

  of({ signature }: ToolPart): string | undefined {
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    return (this.#isSent ? signature : undefined) ?? (isFirst ? this.#missing : undefined);
  }
}

function toCall(
  part: ToolPart,
  { callIds }: StepContext,
  signatures: Signatures,
): { call: AssistantPart; result: ToolResult } {
  const toolCallId = callIds.get(part) ?? part.callId;
  const toolName = wireName(part.tool);
  const signature = signatures.of(part);
  return {
    call: {
      type: "tool-call",
      toolCallId,
      toolName,
      input: wireInput(part.state.input),
      ...(signature !== undefined && { providerOptions: { google: { thoughtSignature: signature } } }),
    },
    result: { type: "tool-result", toolCallId, toolName, output: outputOf(part) },
  };
}

function outputOf({ state }: ToolPart): Extract<ToolResult, { type: "tool-result" }>["output"] {
  if (state.status === "completed") {
    return { type: "text", value: state.compactedAt === undefined ? visibleOutput(state) : clearedOutput };
  }
  return { type: "error-text", value: state.status === "error" ? state.error : interruptedCall };
}

function mediaOf(part: ToolPart, model: Model): UserPart[] {
  const { state } = part;
  if (state.status !== "completed" || state.compactedAt !== undefined || !state.attachments?.length)
    return [];
  return [
    text(`What ${wireName(part.tool)} returned:`),
    ...state.attachments.map((one) => toMedia(one, model)),
  ];
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

function filePart(data: string | URL, mediaType: string, filename: string | undefined): FilePart {
  return { type: "file", data, mediaType, ...(filename !== undefined && { filename }) };
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

function isSameModel({ info }: Message, { ref }: Model): boolean {
  return info.role === "assistant" && info.model.provider === ref.provider && info.model.model === ref.model;
}

const text = (text: string) => ({ type: "text" as const, text });

/** Assigns each call a unique id: the provider's own if it is valid here, otherwise one derived from ours. */
function assignCallIds({ info, parts }: Message, { callId: allowed }: Quirks, used: Set<string>): CallIds {
  const ids = new Map<ToolPart, string>();
  const isFree = (id: string) => allowed.test(id) && !used.has(id);
  for (const part of info.role === "user" ? [] : parts) {
    if (part.type !== "tool") continue;
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
    const hash = createHash("sha256").update(`${round}:${callId}`).digest("hex").slice(0, 9);
    if (isFree(hash)) return hash;
  }
}
