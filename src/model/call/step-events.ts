import { randomUuid } from "../../base/text/hash.ts";
import { hasVisibleText } from "../../base/text/controls.ts";
import { isHighSurrogate } from "../../base/text/excerpt.ts";
import type { FinishReason } from "../../message/message.ts";
import {
  type MetadataOwner,
  type ProviderMetadata,
  providerDataSchema,
  type Tokens,
} from "../../message/part.ts";
import { CallArguments, describeCut, parseArguments } from "../answer/call-arguments.ts";
import type { RefusedCall } from "../answer/refused-call.ts";
import type { StepEvent } from "../model.ts";
import type { StreamPart } from "../wires/wire.ts";
import type { TextCalls } from "../answer/written-calls/text-calls.ts";
import { ThinkTags } from "../answer/think-tags.ts";

type BlockKind = "text" | "reasoning";

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
  /** The usage, if the provider reported any. */
  tokens: Tokens | undefined;
  /** The provider's records of the reasoning, to be sent back with the calls. */
  metadata: ProviderMetadata | undefined;
  readonly #owner: MetadataOwner;
  readonly #take: (event: StepEvent) => void;
  /** All text, reasoning and arguments, to estimate the usage if the provider sends none. */
  readonly #output: string[] = [];
  readonly #calls = new Map<string, OpenCall>();
  readonly #tags = new ThinkTags();
  /** Finds calls in the text; undefined if text is only text. */
  readonly #textCalls: TextCalls | undefined;
  /** A high surrogate at the end of the last text. Dropped if the text does not continue. */
  #highSurrogate = "";
  #highSurrogateKind: BlockKind = "text";
  #block: { readonly kind: BlockKind; readonly id: string } | undefined;
  #blocks = 0;
  /** Data of the open block. */
  #data: Data | undefined;

  constructor(owner: MetadataOwner, take: (event: StepEvent) => void, textCalls?: TextCalls) {
    this.#owner = owner;
    this.#textCalls = textCalls;
    this.#take = take;
  }

  get output(): string {
    return this.#output.join("");
  }

  /** Emits a call that the provider rejected as a failed call. */
  emitRefusedCall({ tool, input, problem }: RefusedCall): void {
    const raw = JSON.stringify(input ?? "");
    const [open] = [...this.#calls].filter(([, { isEmitted }]) => !isEmitted);
    const [providerCallId, call] = open ?? [`call_${randomUuid()}`];
    if (call === undefined) this.#take({ type: "call-start", providerCallId, tool });
    this.#take({ type: "call", providerCallId, tool: call?.tool ?? tool, input, raw, problem });
  }

  add(part: StreamPart): void {
    switch (part.type) {
      case "text-delta":
        return this.#text("text", part.delta);
      case "reasoning-delta":
        this.#text("reasoning", part.delta);
        this.#data ??= dataOf(part);
        return undefined;
      case "text-end":
        return this.#endBlock("text", dataOf(part));
      case "reasoning-end":
        return this.#endBlock("reasoning", dataOf(part));
      case "tool-input-start":
        return this.#startCall(part.id, part.toolName, dataOf(part));
      case "tool-input-delta":
        return this.#continueCall(part.id, part.delta);
      case "tool-call":
        return this.#addWholeCall(part.toolCallId, part.toolName, part.input);
      case "finish":
        this.addUsage(part);
        return this.#finish(part.finishReason.raw);
      default:
        return undefined;
    }
  }

  /** Adds the usage and data of an answer that may have failed. */
  addUsage(part: StreamPart & { type: "finish" }): void {
    this.metadata = this.#own(dataOf(part));
    this.tokens = toTokens(part.usage);
  }

  /** Closes the open block if an answer ends early. Text that was held back is text. */
  close(): void {
    this.#appendAll(this.#tags.end());
    this.#release("reasoning");
    this.#release("text");
    this.#closeBlock();
  }

  #release(kind: BlockKind): void {
    this.#emitText(kind, this.#textCalls?.release(kind) ?? "");
  }

  /** Appends text that may end in the middle of a surrogate pair. */
  #text(kind: BlockKind, delta: string): void {
    const joined = (this.#highSurrogateKind === kind ? this.#highSurrogate : "") + delta;
    const text = isHighSurrogate(joined.charCodeAt(joined.length - 1)) ? joined.slice(0, -1) : joined;
    this.#highSurrogate = joined.slice(text.length);
    this.#highSurrogateKind = kind;
    if (kind === "text" && !this.#tags.isDone) this.#appendAll(this.#tags.add(text));
    else this.#append(kind, text);
  }

  /** Ends a block with the provider's data. A block may be data alone. */
  #endBlock(kind: BlockKind, data: Data = {}): void {
    const hasData = Object.keys(data).some((name) => name !== "itemId");
    if (this.#block?.kind !== kind) {
      if (!hasData || kind === "text") return;
      this.#openBlock(kind);
    }
    this.#closeBlock(Object.keys(data).length > 0 ? data : undefined);
  }

  #openBlock(kind: BlockKind): void {
    this.#closeBlock();
    this.#block = { kind, id: `${kind}-${++this.#blocks}` };
    this.#take({ type: `${kind}-start`, id: this.#block.id });
  }

  #closeBlock(data = this.#data): void {
    const block = this.#block;
    this.#block = undefined;
    this.#data = undefined;
    if (block === undefined) return;
    const metadata = this.#own(data);
    this.#take({ type: `${block.kind}-end`, id: block.id, ...(metadata && { metadata }) });
  }

  #own(data: Data | undefined): ProviderMetadata | undefined {
    return data && { ...this.#owner, data };
  }

  #appendAll(deltas: ReturnType<ThinkTags["add"]>): void {
    for (const { kind, text } of deltas) this.#append(kind, text);
  }

  #append(kind: BlockKind, text: string): void {
    if (text === "") return;
    this.#output.push(text);
    // Visible text ends the reasoning: what was held back of it is no call.
    if (kind === "text" && hasVisibleText(text)) this.#release("reasoning");
    this.#emitText(kind, this.#textCalls === undefined ? text : this.#textCalls.add(kind, text));
  }

  #emitText(kind: BlockKind, text: string): void {
    if (text === "") return;
    this.#emitEmptyCalls();
    if (this.#block?.kind !== kind) this.#openBlock(kind);
    if (this.#block !== undefined) this.#take({ type: `${kind}-delta`, id: this.#block.id, text });
  }

  #startCall(id: string, tool: string, data?: Data): void {
    this.close();
    this.#emitEmptyCalls();
    this.#highSurrogate = "";
    this.#calls.set(id, { tool, arguments: new CallArguments(), isEmitted: false });
    const metadata = this.#own(data);
    this.#take({ type: "call-start", providerCallId: id, tool, ...(metadata && { metadata }) });
  }

  #continueCall(id: string, delta: string): void {
    const call = this.#calls.get(id);
    if (call === undefined || call.isEmitted) return;
    this.#output.push(delta);
    call.arguments.add(delta);
    // Arguments with balanced braces that do not parse may still become valid.
    if (call.arguments.isWhole && parseArguments(call.arguments.raw).problem === undefined)
      this.#emitCall(id, call);
  }

  /** Adds a call that was not streamed, or whose arguments were not. */
  #addWholeCall(id: string, tool: string, input: string): void {
    if (!this.#calls.has(id)) this.#startCall(id, tool);
    if (this.#calls.get(id)?.arguments.raw === "") this.#continueCall(id, input);
  }

  /** Emits calls with an empty object as arguments. Once the next block begins, the arguments cannot continue. */
  #emitEmptyCalls(): void {
    for (const [id, call] of this.#calls) {
      if (!call.isEmitted && call.arguments.isEmptyObject) this.#emitCall(id, call);
    }
  }

  /** Emits the calls at the end of the text. */
  #emitTextCalls(reason: FinishReason): void {
    this.#appendAll(this.#tags.end());
    const end = this.#textCalls?.end(reason === "length");
    if (end === undefined) return;
    for (const kind of ["reasoning", "text"] as const) this.#emitText(kind, end.shown[kind]);
    for (const { name, raw, markup } of end.calls) {
      const { id, call } = this.#startTextCall(name, markup);
      call.arguments.add(raw);
      this.#emitCall(id, call);
    }
    if (end.cut === undefined) return;
    const { id, call } = this.#startTextCall(end.cut.tool, end.cut.markup);
    this.#emitCall(id, call, reason);
  }

  #startTextCall(tool: string, markup: string): { id: string; call: OpenCall } {
    this.#closeBlock();
    const id = `call_${randomUuid()}`;
    const call = { tool, arguments: new CallArguments(), isEmitted: false };
    this.#calls.set(id, call);
    this.#take({ type: "call-start", providerCallId: id, tool, markup });
    return { id, call };
  }

  #finish(raw: string | undefined): void {
    const reason = reasons.get(raw?.toLowerCase() ?? "") ?? "unknown";
    // After any other finish reason, a call without arguments may have been cut off.
    const isWhole = reason === "stop" || reason === "tool-calls" || reason === "unknown";
    if (isWhole || reason === "length") this.#emitTextCalls(reason);
    this.close();
    for (const [id, call] of this.#calls) {
      if (!call.isEmitted) this.#emitCall(id, call, isWhole ? undefined : reason);
    }
    const called = this.#calls.size > 0 && isWhole;
    this.endReason = called ? "tool-calls" : reason === "tool-calls" ? "stop" : reason;
  }

  /** Emits a call, which was cut off if there is a reason for it. */
  #emitCall(providerCallId: string, call: OpenCall, cutOff?: FinishReason): void {
    call.isEmitted = true;
    const { tool } = call;
    const { raw } = call.arguments;
    const { input, problem } =
      cutOff === undefined ? parseArguments(raw) : { input: undefined, problem: undefined };
    this.#take({
      type: "call",
      providerCallId,
      tool,
      input,
      raw,
      ...(cutOff !== undefined && { problem: cutOffProblem(cutOff, raw) }),
      ...(problem !== undefined && {
        problem: `The arguments of ${tool} are ${problem}. Call it again.`,
        isMalformed: true,
      }),
    });
  }
}

type Data = ProviderMetadata["data"];

/** Returns the data that is passed through a part of the SDK. */
function dataOf({ providerMetadata = {} }: Pick<StreamPart & { type: "finish" }, "providerMetadata">) {
  const [data] = Object.values(providerMetadata);
  return data && providerDataSchema.parse(data);
}

type Usage = (StreamPart & { type: "finish" })["usage"];

function toTokens({ inputTokens, outputTokens }: Usage): Tokens | undefined {
  const { noCache: input, cacheRead: read = 0, cacheWrite: write = 0 } = inputTokens;
  const { text: output = 0, reasoning = 0 } = outputTokens;
  return input === undefined ? undefined : { input, output, reasoning, cache: { read, write } };
}

function cutOffProblem(reason: FinishReason, raw: string): string {
  const why = reason === "length" ? "the limit of output tokens was reached" : `the answer ended (${reason})`;
  const cut = describeCut(raw) ?? `Arrived: ${raw.length} characters`;
  return `The arguments were cut off because ${why}. Nothing was run. ${cut}. Call it again.`;
}

/** The finish reasons of all providers. */
const reasons: ReadonlyMap<string, FinishReason> = new Map([
  ["stop", "stop"],
  ["end_turn", "stop"],
  ["pause_turn", "stop"],
  ["eos", "stop"],
  ["eos_token", "stop"],
  ["stop_sequence", "stop"],
  ["completed", "stop"],
  ["length", "length"],
  ["max_tokens", "length"],
  ["max_output_tokens", "length"],
  ["model_length", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_calls", "tool-calls"],
  ["function_call", "tool-calls"],
  ["tool_use", "tool-calls"],
  ["tool_call", "tool-calls"],
  ["content_filter", "content-filter"],
  ["safety", "content-filter"],
  ["recitation", "content-filter"],
  ["sensitive", "content-filter"],
  ["refusal", "refusal"],
]);
