import { randomUUID } from "node:crypto";
import type { LanguageModelStreamPart } from "ai";
import { isHighSurrogate } from "../../base/text/excerpt.ts";
import type { FinishReason } from "../../message/message.ts";
import type { Tokens } from "../../message/part.ts";
import { CallArguments, parseArguments } from "./call-arguments.ts";
import type { StepEvent } from "../model.ts";
import { ReasoningRecord } from "./reasoning-details.ts";
import type { RefusedCall } from "./refused-call.ts";
import { ThinkTags } from "./think-tags.ts";
import { toTokens } from "./usage.ts";

/** A stream part of the SDK, or text that bypassed it. */
export type StreamedPart =
  | LanguageModelStreamPart
  | { readonly type: "text-delta" | "reasoning-delta"; readonly text: string };

interface Block {
  readonly kind: "text" | "reasoning";
  readonly id: string;
}

interface OpenCall {
  readonly tool: string;
  readonly arguments: CallArguments;
  isEmitted: boolean;
}

/**
 * Converts the stream of one model call to step events. Blocks of text and reasoning get new ids and are closed before a
 * call begins. A call is emitted once, as soon as its arguments are complete.
 */
export class StepEvents {
  /** Set by the part that ends the answer. */
  endReason: FinishReason | undefined;
  /** All text, reasoning and arguments, to estimate the usage if the provider sends none. */
  readonly #output: string[] = [];
  readonly #calls = new Map<string, OpenCall>();
  readonly #signatures = new Map<string, string>();
  #usage: Tokens | undefined;
  readonly reasoning = new ReasoningRecord();
  readonly #tags = new ThinkTags();
  /** A high surrogate at the end of the last text. Dropped if the text does not continue. */
  #highSurrogate = "";
  #highSurrogateKind: Block["kind"] = "text";
  #block: Block | undefined;
  #blocks = 0;

  get output(): string {
    return this.#output.join("");
  }

  /** Stores a call's thought signature until the call is emitted. */
  addSignature(providerCallId: string, signature: string): void {
    this.#signatures.set(providerCallId, signature);
  }

  /** The usage that the provider reported so far. */
  get tokens(): Tokens | undefined {
    return this.#usage;
  }

  /** Replaces the usage, except for an input that only the earlier one has: some servers report input first, output last. */
  reportUsage(usage: unknown): void {
    const tokens = toTokens(usage);
    if (tokens === undefined) return;
    const { input, cache } = tokens;
    const hasInput = input + cache.read + cache.write > 0;
    const before = this.#usage;
    this.#usage =
      hasInput || before === undefined ? tokens : { ...tokens, input: before.input, cache: before.cache };
  }

  /** Emits a call that the provider rejected as a failed call. */
  emitRefusedCall({ tool, input, problem }: RefusedCall): StepEvent[] {
    const raw = JSON.stringify(input ?? "");
    for (const [providerCallId, open] of this.#calls) {
      if (open.isEmitted) continue;
      open.isEmitted = true;
      return [{ type: "call", providerCallId, tool: open.tool, input, raw, problem }];
    }
    const providerCallId = `call_${randomUUID()}`;
    return [
      { type: "call-start", providerCallId, tool },
      { type: "call", providerCallId, tool, input, raw, problem },
    ];
  }

  add(part: StreamedPart): StepEvent[] {
    if (part.type === "text-delta") return this.#text("text", part.text);
    if (part.type === "reasoning-delta") return this.#text("reasoning", part.text);
    if (part.type === "tool-input-start") return this.#startCall(part.id, part.toolName);
    if (part.type === "tool-input-delta") return this.#continueCall(part.id, part.delta);
    if (part.type !== "model-call-end") return [];
    return this.#finish(part.finishReason, part.rawFinishReason);
  }

  /** Closes the open block if an answer ends early. */
  close(): StepEvent[] {
    return [...this.#appendAll(this.#tags.end()), ...this.#closeBlock()];
  }

  /** Appends text that may end in the middle of a surrogate pair. */
  #text(kind: "text" | "reasoning", piece: string): StepEvent[] {
    const joined = (this.#highSurrogateKind === kind ? this.#highSurrogate : "") + piece;
    const text = isHighSurrogate(joined.charCodeAt(joined.length - 1)) ? joined.slice(0, -1) : joined;
    this.#highSurrogate = joined.slice(text.length);
    this.#highSurrogateKind = kind;
    const mayHoldTags = kind === "text" && !this.#tags.isDone;
    return mayHoldTags ? this.#appendAll(this.#tags.add(text)) : this.#append(kind, text);
  }

  #closeBlock(): StepEvent[] {
    const block = this.#block;
    this.#block = undefined;
    return block === undefined ? [] : [{ type: `${block.kind}-end`, id: block.id }];
  }

  #appendAll(pieces: ReturnType<ThinkTags["add"]>): StepEvent[] {
    return pieces.flatMap(({ kind, text }) => this.#append(kind, text));
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
    const signature = this.#signatures.get(id);
    events.push({
      type: "call-start",
      providerCallId: id,
      tool,
      ...(signature !== undefined && { signature }),
    });
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
      // The SDK reports a normal stop with a refusal as "content-filter".
      return raw === "stop" ? "refusal" : "content-filter";
    default:
      return lookUpReason(raw?.toLowerCase() ?? "");
  }
}

const lookUpReason = (word: string): FinishReason =>
  Object.hasOwn(reasons, word) ? (reasons[word] ?? "unknown") : "unknown";
