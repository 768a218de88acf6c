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

/** Text that came around the SDK, or one of its parts. */
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
  told: boolean;
}

/**
 * Turns what streams of one model call into step events: blocks of text and reasoning get ids of their own and are
 * closed before a call begins, a call is told the moment its arguments are whole, each call once.
 */
export class StepEvents {
  /** Set by the part that ends the answer. */
  endReason: FinishReason | undefined;
  /** All text, reasoning and arguments, for an estimate where no usage comes. */
  readonly #written: string[] = [];
  readonly #calls = new Map<string, OpenCall>();
  readonly #signatures = new Map<string, string>();
  #usage: Tokens | undefined;
  readonly reasoning = new ReasoningRecord();
  readonly #tags = new ThinkTags();
  /** The first half of a character; it is dropped where something else follows. */
  #half = "";
  #halfKind: Block["kind"] = "text";
  #block: Block | undefined;
  #blocks = 0;

  get written(): string {
    return this.#written.join("");
  }

  /** Keeps a call's thought signature until the call itself is told. */
  signed(providerCallId: string, signature: string): void {
    this.#signatures.set(providerCallId, signature);
  }

  /** What the provider reported so far. */
  get tokens(): Tokens | undefined {
    return this.#usage;
  }

  /** A later usage replaces an earlier one; some servers report input first and output last. */
  report(usage: unknown): void {
    const tokens = toTokens(usage);
    if (tokens === undefined) return;
    const { input, cache } = tokens;
    const hasInput = input + cache.read + cache.write > 0;
    const before = this.#usage;
    this.#usage =
      hasInput || before === undefined ? tokens : { ...tokens, input: before.input, cache: before.cache };
  }

  /** A call that the provider refused, as one that failed. */
  refuse({ tool, input, problem }: RefusedCall): StepEvent[] {
    const raw = JSON.stringify(input ?? "");
    for (const [providerCallId, open] of this.#calls) {
      if (open.told) continue;
      open.told = true;
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

  /** Closes what is open, where an answer ends early. */
  close(): StepEvent[] {
    return [...this.#appendAll(this.#tags.end()), ...this.#closeBlock()];
  }

  /** Text in pieces, of which one may end in the midst of a character. */
  #text(kind: "text" | "reasoning", piece: string): StepEvent[] {
    const joined = (this.#halfKind === kind ? this.#half : "") + piece;
    const text = isHighSurrogate(joined.charCodeAt(joined.length - 1)) ? joined.slice(0, -1) : joined;
    this.#half = joined.slice(text.length);
    this.#halfKind = kind;
    const mayHoldTags = kind === "text" && !this.#tags.isOver;
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
    this.#written.push(text);
    if (this.#block?.kind === kind && this.#calls.size === 0) {
      return [{ type: `${kind}-delta`, id: this.#block.id, text }];
    }
    const events: StepEvent[] = this.#tellEmptyCalls();
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
    const events = [...this.close(), ...this.#tellEmptyCalls()];
    this.#half = "";
    this.#calls.set(id, { tool, arguments: new CallArguments(), told: false });
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
    if (call === undefined || call.told) return [];
    this.#written.push(delta);
    call.arguments.add(delta);
    // Balanced braces around something that does not parse may still be mended by what follows.
    if (!call.arguments.isWhole || parseArguments(call.arguments.raw).problem !== undefined) return [];
    return [tell(id, call)];
  }

  /** An empty object may be a beginning, but not when something else has begun after it. */
  #tellEmptyCalls(): StepEvent[] {
    const events: StepEvent[] = [];
    for (const [id, call] of this.#calls) {
      if (!call.told && call.arguments.isEmptyObject) events.push(tell(id, call));
    }
    return events;
  }

  #finish(reason: string, raw: string | undefined): StepEvent[] {
    const mapped = reasonOf(reason, raw);
    // After any other end, what looks like a call without arguments may be one whose arguments were cut off.
    const isWhole = mapped === "stop" || mapped === "tool-calls" || mapped === "unknown";
    const events = this.close();
    for (const [id, call] of this.#calls) {
      if (!call.told) events.push(isWhole ? tell(id, call) : tellCut(id, call, mapped));
    }
    const called = this.#calls.size > 0 && isWhole;
    this.endReason = called ? "tool-calls" : mapped === "tool-calls" ? "stop" : mapped;
    return events;
  }
}

function tell(providerCallId: string, call: OpenCall): StepEvent {
  call.told = true;
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

function tellCut(providerCallId: string, call: OpenCall, reason: FinishReason): StepEvent {
  call.told = true;
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

/** Other words that providers use for the reasons of OpenAI. */
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

function reasonOf(reason: string, raw: string | undefined): FinishReason {
  switch (reason) {
    case "stop":
    case "length":
    case "tool-calls":
      return reason;
    case "content-filter":
      // The SDK says so of an answer that ended well and consists of a refusal.
      return raw === "stop" ? "refusal" : "content-filter";
    default:
      return reasonOfWord(raw?.toLowerCase() ?? "");
  }
}

const reasonOfWord = (word: string): FinishReason =>
  Object.hasOwn(reasons, word) ? (reasons[word] ?? "unknown") : "unknown";
