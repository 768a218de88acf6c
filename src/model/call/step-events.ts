import { randomUuid } from "../../base/text/hash.ts";
import { isHighSurrogate } from "../../base/text/excerpt.ts";
import type { FinishReason } from "../../message/message.ts";
import type { ProviderMetadata } from "../../message/part.ts";
import type { StepEvent } from "../model.ts";
import type { AnswerNotes } from "../wires/answer-notes.ts";
import type { StreamPart } from "../wires/wire.ts";
import { CallArguments, parseArguments } from "../answer/call-arguments.ts";
import type { RefusedCall } from "../answer/refused-call.ts";
import { ThinkTags } from "./think-tags.ts";

/** To whom a provider's data belongs. */
export type MetadataOwner = Omit<ProviderMetadata, "data">;

interface Block {
  readonly kind: "text" | "reasoning";
  readonly id: string;
}

interface OpenCall {
  readonly tool: string;
  readonly arguments: CallArguments;
  isEmitted: boolean;
}

/** Fields of the SDK's metadata that are sent back. An item's id only tells which parts belong together. */
const returnedFields = ["itemId", "reasoningEncryptedContent", "phase", "signature", "redactedData"] as const;

/**
 * Converts the stream of one model call to step events. Blocks of text and reasoning get new ids and are closed before a
 * call begins. A call is emitted once, as soon as its arguments are complete.
 */
export class StepEvents {
  /** Set by the part that ends the answer. */
  endReason: FinishReason | undefined;
  readonly #notes: AnswerNotes;
  readonly #owner: MetadataOwner;
  /** All text, reasoning and arguments, to estimate the usage if the provider sends none. */
  readonly #output: string[] = [];
  readonly #calls = new Map<string, OpenCall>();
  /** Metadata of the SDK's current block. */
  #metadata: ProviderMetadata["data"] = {};
  readonly #tags = new ThinkTags();
  /** A high surrogate at the end of the last text. Dropped if the text does not continue. */
  #highSurrogate = "";
  #highSurrogateKind: Block["kind"] = "text";
  #block: Block | undefined;
  #blocks = 0;

  constructor(notes: AnswerNotes, owner: MetadataOwner) {
    this.#notes = notes;
    this.#owner = owner;
  }

  get output(): string {
    return this.#output.join("");
  }

  /** The provider's records of the reasoning, to be sent back with the calls. */
  get metadata(): ProviderMetadata | undefined {
    return this.#own(this.#notes.reasoning.details);
  }

  /** Emits a call that the provider rejected as a failed call. */
  emitRefusedCall({ tool, input, problem }: RefusedCall): StepEvent[] {
    const raw = JSON.stringify(input ?? "");
    for (const [providerCallId, open] of this.#calls) {
      if (open.isEmitted) continue;
      open.isEmitted = true;
      return [{ type: "call", providerCallId, tool: open.tool, input, raw, problem }];
    }
    const providerCallId = `call_${randomUuid()}`;
    return [
      { type: "call-start", providerCallId, tool },
      { type: "call", providerCallId, tool, input, raw, problem },
    ];
  }

  add(part: StreamPart): StepEvent[] {
    switch (part.type) {
      case "text-start":
      case "reasoning-start":
        this.#metadata = pickMetadata(part.providerMetadata);
        return [];
      case "text-delta":
        return this.#text("text", part.delta);
      case "reasoning-delta":
        this.#metadata = { ...this.#metadata, ...pickMetadata(part.providerMetadata) };
        return this.#text("reasoning", part.delta);
      case "text-end":
      case "reasoning-end":
        return this.#endBlock(part.type === "text-end" ? "text" : "reasoning", part.providerMetadata);
      case "tool-input-start":
        return this.#startCall(part.id, part.toolName);
      case "tool-input-delta":
        return this.#continueCall(part.id, part.delta);
      case "tool-call":
        return this.#addWholeCall(part.toolCallId, part.toolName, part.input);
      case "finish":
        return this.#finish(part.finishReason.unified, part.finishReason.raw);
      default:
        return [];
    }
  }

  /** Closes the open block if an answer ends early. */
  close(): StepEvent[] {
    return [...this.#appendAll(this.#tags.end()), ...this.#closeBlock()];
  }

  /** Appends text that may end in the middle of a surrogate pair. */
  #text(kind: "text" | "reasoning", delta: string): StepEvent[] {
    const joined = (this.#highSurrogateKind === kind ? this.#highSurrogate : "") + delta;
    const text = isHighSurrogate(joined.charCodeAt(joined.length - 1)) ? joined.slice(0, -1) : joined;
    this.#highSurrogate = joined.slice(text.length);
    this.#highSurrogateKind = kind;
    const mayHoldTags = kind === "text" && !this.#tags.isDone;
    return mayHoldTags ? this.#appendAll(this.#tags.add(text)) : this.#append(kind, text);
  }

  /** Ends a block of the SDK. Ours ends with it only if it has metadata: chat completions alternate between blocks. */
  #endBlock(kind: Block["kind"], metadata: SdkMetadata): StepEvent[] {
    const data = { ...this.#metadata, ...pickMetadata(metadata) };
    const { itemId, ...sent } = data;
    const isEmpty = Object.keys(sent).length === 0;
    this.#metadata = {};
    if (this.#block?.kind === kind) {
      if (isEmpty && itemId === undefined) return [];
      return this.#closeBlock(kind === "reasoning" ? data : isEmpty ? undefined : sent);
    }
    if (isEmpty || kind === "text") return [];
    const events = this.#closeBlock();
    this.#block = this.#open(kind, events);
    return [...events, ...this.#closeBlock(data)];
  }

  #closeBlock(data?: ProviderMetadata["data"]): StepEvent[] {
    const block = this.#block;
    this.#block = undefined;
    if (block === undefined) return [];
    const { thoughtsField: field } = this.#notes;
    const metadata = this.#own(data ?? (block.kind === "reasoning" && field ? { field } : undefined));
    return [{ type: `${block.kind}-end`, id: block.id, ...(metadata && { metadata }) }];
  }

  #own(data: ProviderMetadata["data"] | undefined): ProviderMetadata | undefined {
    return data && { ...this.#owner, data };
  }

  #appendAll(deltas: ReturnType<ThinkTags["add"]>): StepEvent[] {
    return deltas.flatMap(({ kind, text }) => this.#append(kind, text));
  }

  #append(kind: "text" | "reasoning", text: string): StepEvent[] {
    if (text === "") return [];
    this.#output.push(text);
    if (this.#block?.kind === kind && this.#calls.size === 0) {
      return [{ type: `${kind}-delta`, id: this.#block.id, text }];
    }
    const events: StepEvent[] = this.#emitEmptyCalls();
    if (this.#block?.kind !== kind) events.push(...this.#closeBlock());
    this.#block ??= this.#open(kind, events);
    events.push({ type: `${kind}-delta`, id: this.#block.id, text });
    return events;
  }

  #open(kind: "text" | "reasoning", events: StepEvent[]): Block {
    const id = `${kind}-${++this.#blocks}`;
    events.push({ type: `${kind}-start`, id });
    return { kind, id };
  }

  #startCall(id: string, tool: string): StepEvent[] {
    const events = [...this.close(), ...this.#emitEmptyCalls()];
    this.#highSurrogate = "";
    this.#calls.set(id, { tool, arguments: new CallArguments(), isEmitted: false });
    const thoughtSignature = this.#notes.signatures.get(id);
    const metadata = this.#own(thoughtSignature === undefined ? undefined : { thoughtSignature });
    events.push({ type: "call-start", providerCallId: id, tool, ...(metadata && { metadata }) });
    return events;
  }

  #continueCall(id: string, delta: string): StepEvent[] {
    const call = this.#calls.get(id);
    if (call === undefined || call.isEmitted) return [];
    this.#output.push(delta);
    call.arguments.add(delta);
    // Arguments with balanced braces that do not parse may still become valid.
    if (!call.arguments.isWhole || parseArguments(call.arguments.raw).problem !== undefined) return [];
    return [emitCall(id, call)];
  }

  /** Adds a call that was not streamed, or whose arguments were not. */
  #addWholeCall(id: string, tool: string, input: string): StepEvent[] {
    const started = this.#calls.has(id) ? [] : this.#startCall(id, tool);
    return this.#calls.get(id)?.arguments.raw === ""
      ? [...started, ...this.#continueCall(id, input)]
      : started;
  }

  /** Emits calls with an empty object as arguments. Once the next block begins, the arguments cannot continue. */
  #emitEmptyCalls(): StepEvent[] {
    const events: StepEvent[] = [];
    for (const [id, call] of this.#calls) {
      if (!call.isEmitted && call.arguments.isEmptyObject) events.push(emitCall(id, call));
    }
    return events;
  }

  #finish(reason: string, raw: string | undefined): StepEvent[] {
    const mapped = mapReason(reason, raw);
    // After any other finish reason, a call without arguments may have been cut off.
    const isWhole = mapped === "stop" || mapped === "tool-calls" || mapped === "unknown";
    const events = this.close();
    for (const [id, call] of this.#calls) {
      if (!call.isEmitted) events.push(isWhole ? emitCall(id, call) : emitCutOffCall(id, call, mapped));
    }
    const called = this.#calls.size > 0 && isWhole;
    this.endReason = called ? "tool-calls" : mapped === "tool-calls" ? "stop" : mapped;
    return events;
  }
}

type SdkMetadata = Extract<StreamPart, { type: "text-start" }>["providerMetadata"];

/** Returns the fields of the SDK's metadata that are sent back. */
function pickMetadata(metadata: SdkMetadata): ProviderMetadata["data"] {
  const [data = {}] = Object.values(metadata ?? {});
  const picked: ProviderMetadata["data"] = {};
  for (const field of returnedFields) {
    const value = data[field];
    if (typeof value === "string") picked[field] = value;
  }
  return picked;
}

function emitCall(providerCallId: string, call: OpenCall): StepEvent {
  call.isEmitted = true;
  const { raw } = call.arguments;
  const { input, problem } = parseArguments(raw);
  return {
    type: "call",
    providerCallId,
    tool: call.tool,
    input,
    raw,
    ...(problem !== undefined && {
      problem: `The arguments of ${call.tool} are ${problem}. Call it again.`,
      isMalformed: true,
    }),
  };
}

function emitCutOffCall(providerCallId: string, call: OpenCall, reason: FinishReason): StepEvent {
  call.isEmitted = true;
  const why = reason === "length" ? "the limit of output tokens was reached" : `the answer ended (${reason})`;
  const problem = `The arguments were cut off because ${why}. Nothing was run; make the call again, in smaller pieces if they are long.`;
  return {
    type: "call",
    providerCallId,
    tool: call.tool,
    input: undefined,
    raw: call.arguments.raw,
    problem,
  };
}

/** Finish reasons of other providers, mapped to ours. */
const reasons: Readonly<Record<string, FinishReason>> = {
  end_turn: "stop",
  eos: "stop",
  eos_token: "stop",
  stop_sequence: "stop",
  completed: "stop",
  max_tokens: "length",
  max_output_tokens: "length",
  model_length: "length",
  tool_use: "tool-calls",
  tool_call: "tool-calls",
  safety: "content-filter",
  recitation: "content-filter",
  sensitive: "content-filter",
  refusal: "refusal",
};

function mapReason(reason: string, raw: string | undefined): FinishReason {
  switch (reason) {
    case "stop":
    case "length":
    case "tool-calls":
      return reason;
    case "content-filter":
      // The SDK reports a refusal with a normal stop as "content-filter".
      return raw === undefined || raw === "stop" || raw === "refusal" ? "refusal" : "content-filter";
    default:
      return lookUpReason(raw?.toLowerCase() ?? "");
  }
}

const lookUpReason = (word: string): FinishReason =>
  Object.hasOwn(reasons, word) ? (reasons[word] ?? "unknown") : "unknown";
