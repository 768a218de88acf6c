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
import { mediumKinds, takesMedium } from "./media.ts";
import type { Model } from "../model.ts";
import { quirksOf, type Quirks } from "../quirks.ts";

export const interruptedCall = "[Tool execution was interrupted]";
export const compactionQuestion = "What did we do so far?";

export interface ModelMessagesOptions {
  readonly model: Model;
  readonly quirks?: Quirks;
  /** What was converted before, of the same conversation for the same model. */
  readonly conversions?: Conversions;
}

type AssistantPart = Exclude<AssistantContent, string>[number];
type UserPart = Exclude<UserContent, string>[number];
type ToolResult = ToolModelMessage["content"][number];

/** A message of the transcript as it goes to a model. */
export interface Converted {
  /** Empty where the model is told nothing of it. */
  readonly messages: readonly ModelMessage[];
  /** The same as the SDK writes them for the provider, once it has. */
  written?: readonly unknown[];
}

/**
 * The visible transcript as messages for a model, for each message what it becomes. Every call has exactly one result,
 * which follows its message at once; media that the model does not take become a line of text; media that a tool
 * returned follow the results in a user message, because a tool's result is text for OpenAI-compatible providers.
 */
export function toModelMessages(
  messages: readonly Message[],
  {
    model,
    quirks = quirksOf(model.ref.provider, "", model.ref.model),
    conversions = new Conversions(),
  }: ModelMessagesOptions,
): Converted[] {
  const told = messages.filter((message, index) => !isUnanswered(message, messages[index + 1]));
  return conversions.of(told, { model, quirks });
}

/** A compaction that failed or was cancelled asks what nobody answered. */
function isUnanswered({ info, parts }: Message, next: Message | undefined): boolean {
  if (info.role !== "user" || !parts.some(({ type }) => type === "compaction")) return false;
  return next?.info.role !== "assistant" || next.parts.length === 0;
}

interface Conversion {
  readonly message: Message;
  readonly info: MessageInfo;
  readonly parts: readonly Part[];
  /** Of those parts that are calls. */
  readonly callIds: CallIds;
  /** The kinds of media that the model took, which may become fewer. */
  readonly media: string;
  readonly bringsThoughts: boolean;
  readonly converted: Converted;
}

/** The ids under which the model is told of calls. */
type CallIds = ReadonlyMap<ToolPart, string>;

/**
 * What the messages of a conversation were converted to. A long one is sent again with each step: converting all of it
 * anew makes as much garbage as its text is long, and takes as much longer as it has grown.
 */
export class Conversions {
  readonly #known: Conversion[] = [];
  /** Ids that have a call. */
  readonly #usedIds = new Set<string>();

  /** From the first message on that changed all are converted anew: the ids of calls depend on those before. */
  of(messages: readonly Message[], { model, quirks }: Pick<MessageContext, "model" | "quirks">): Converted[] {
    const media = mediumKinds.filter((medium) => model.abilities[medium]).join();
    const lastQuestion = messages.findLastIndex(({ info }) => info.role === "user");
    for (const [index, message] of messages.entries()) {
      const bringsThoughts = quirks.returnsReasoning === "turn" && index > lastQuestion;
      const known = this.#known[index];
      if (known !== undefined && isUnchanged(known, message, { media, bringsThoughts })) continue;
      this.#forgetFrom(index);
      const callIds = callIdsOf(message, quirks, this.#usedIds);
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

/** Infos and parts are replaced where they change, but for the text of what is being written, which nobody asks with. */
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
  return stepsOf(message.parts).flatMap((parts) => toStepMessages(parts, { ...context, isOwn }));
}

interface MessageContext {
  readonly model: Model;
  readonly quirks: Quirks;
  readonly callIds: CallIds;
  /** Part of the turn that is answered now, for a model that wants its thoughts of that turn back. */
  readonly bringsThoughts: boolean;
}

interface StepContext extends MessageContext {
  /** Written by the model that is asked now. */
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
function stepsOf(parts: readonly Part[]): Part[][] {
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
  // Reasoning alone answers nothing, and no provider takes a message of nothing else.
  if (content.length === 0) return [];
  const details = calls.length > 0 ? detailsOf(parts, context) : undefined;
  const reasoning = details === undefined ? reasoningOf(parts, calls.length > 0, context) : [];
  const assistant: ModelMessage = {
    role: "assistant",
    content: [...reasoning, ...content],
    ...(details !== undefined && { providerOptions: { openaiCompatible: { reasoning_details: details } } }),
  };
  if (results.length === 0) return [assistant];
  const tool: ModelMessage = { role: "tool", content: results };
  return media.length === 0 ? [assistant, tool] : [assistant, tool, { role: "user", content: media }];
}

/** Where a provider wants reasoning with each call, calls of another model bring a blank in its place. */
function reasoningOf(
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

/** Another model could not read them. */
function detailsOf(parts: readonly Part[], { quirks, isOwn }: StepContext): ReasoningDetail[] | undefined {
  if (!quirks.returnsReasoningDetails || !isOwn) return undefined;
  return parts.find((part) => part.type === "step-finish")?.reasoningDetails;
}

/**
 * The thought signatures that go back with a step's calls. A step has one with its first call; where none is at hand,
 * because another model made the calls, a word stands for it.
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
  if (!takesMedium(mime, model)) return text(`[Attached ${mime}${name}: this model cannot see it]`);
  const data = base64Of(url);
  if (data !== undefined) return filePart(data, mime, filename);
  if (/^https?:/.test(url) && mime.startsWith("image/") && URL.canParse(url)) {
    return filePart(new URL(url), mime, filename);
  }
  return text(`[Attached ${mime}${name}: its content is not at hand]`);
}

function filePart(data: string | URL, mediaType: string, filename: string | undefined): FilePart {
  return { type: "file", data, mediaType, ...(filename !== undefined && { filename }) };
}

/** Text and directories were written into the message when it was made. */
const isInlined = (mime: string): boolean => mime.startsWith("text/") || mime.endsWith("directory");

function base64Of(url: string): string | undefined {
  const comma = url.indexOf(",");
  if (!url.startsWith("data:") || comma < 0) return undefined;
  const data = url.slice(comma + 1);
  return url.slice(0, comma).endsWith(";base64")
    ? data
    : Buffer.from(decodeURIComponent(data)).toString("base64");
}

/** Providers refuse calls whose arguments are not an object, even where the call failed for just that. */
function wireInput(input: unknown): Record<string, unknown> {
  return isRecord(input) ? { ...input } : {};
}

/** Providers refuse names that could not be a tool's, even where the call failed for just that. */
function wireName(tool: string): string {
  return tool.replaceAll(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed";
}

function isSameModel({ info }: Message, { ref }: Model): boolean {
  return info.role === "assistant" && info.model.provider === ref.provider && info.model.model === ref.model;
}

const text = (text: string) => ({ type: "text" as const, text });

/** Gives each call the provider's own id where it can be used, and else one made of ours; no id twice. */
function callIdsOf({ info, parts }: Message, { callId: allowed }: Quirks, used: Set<string>): CallIds {
  const ids = new Map<ToolPart, string>();
  const isFree = (id: string) => allowed.test(id) && !used.has(id);
  for (const part of info.role === "user" ? [] : parts) {
    if (part.type !== "tool") continue;
    const { providerCallId, callId } = part;
    const wished = [providerCallId, callId].find((id) => id !== undefined && isFree(id));
    const id = wished ?? madeId(callId, isFree);
    used.add(id);
    ids.set(part, id);
  }
  return ids;
}

function madeId(callId: string, isFree: (id: string) => boolean): string {
  for (let round = 0; ; round++) {
    const hash = createHash("sha256").update(`${round}:${callId}`).digest("hex").slice(0, 9);
    if (isFree(hash)) return hash;
  }
}
