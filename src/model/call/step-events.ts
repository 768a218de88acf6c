import { randomUuid } from "../../base/text/hash.ts";
import type { FinishReason } from "../../message/message.ts";
import {
  type MetadataOwner,
  type ProviderMetadata,
  providerDataSchema,
  type Tokens,
} from "../../message/part.ts";
import { AnswerText, type TaggedText } from "../answer/answer-text.ts";
import { CallArguments, describeCutOff, parseArguments } from "../answer/call-arguments.ts";
import { toFinishReason } from "../answer/finish-reason.ts";
import type { RefusedCall } from "../answer/refused-call.ts";
import type { TextCalls } from "../answer/written-calls/text-calls.ts";
import type { StepEvent } from "../model.ts";
import type { StreamPart } from "../wires/wire.ts";

type BlockKind = TaggedText["kind"];
type Data = ProviderMetadata["data"];
type Finish = StreamPart & { type: "finish" };

interface OpenCall {
  readonly id: string;
  readonly tool: string;
  readonly arguments: CallArguments;
  isEmitted: boolean;
}

/**
 * Converts the stream of one model call to step events. Blocks of text and reasoning end before a call begins. A call
 * is emitted once, as soon as its arguments are complete.
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
  readonly #text: AnswerText;
  #block: BlockKind | undefined;
  /** Data of the open block. */
  #data: Data | undefined;

  constructor(owner: MetadataOwner, take: (event: StepEvent) => void, textCalls?: TextCalls) {
    this.#owner = owner;
    this.#take = take;
    this.#text = new AnswerText(textCalls);
  }

  get output(): string {
    return this.#output.join("");
  }

  /** Emits a call that the provider rejected as a failed call. */
  emitRefusedCall({ tool, input, problem }: RefusedCall): void {
    const open = [...this.#calls.values()].find(({ isEmitted }) => !isEmitted);
    const call = open ?? this.#startCall(newCallId(), tool);
    const raw = JSON.stringify(input ?? "");
    this.#take({ type: "call", providerCallId: call.id, tool: call.tool, input, raw, problem });
  }

  add(part: StreamPart): void {
    switch (part.type) {
      case "text-delta":
        return this.#addText("text", part.delta);
      case "reasoning-delta":
        this.#addText("reasoning", part.delta);
        this.#data ??= dataOf(part);
        return undefined;
      case "text-end":
        return this.#endBlock("text", dataOf(part));
      case "reasoning-end":
        return this.#endBlock("reasoning", dataOf(part));
      case "tool-input-start":
        this.#beginCall(part.id, part.toolName, dataOf(part));
        return undefined;
      case "tool-input-delta":
        return this.#continueCall(this.#calls.get(part.id), part.delta);
      case "tool-call":
        return this.#endCall(part);
      case "finish":
        this.addUsage(part);
        return this.#finish(toFinishReason(part.finishReason.raw));
      default:
        return undefined;
    }
  }

  /** Adds the usage and data of an answer that may have failed. */
  addUsage(part: Finish): void {
    this.metadata = this.#own(dataOf(part));
    this.tokens = toTokens(part.usage);
  }

  /** Closes the open block if an answer ends early. Text that was held back is text. */
  close(): void {
    this.#show(this.#text.release());
    this.#closeBlock();
  }

  #addText(kind: BlockKind, delta: string): void {
    this.#output.push(delta);
    this.#show(this.#text.add(kind, delta));
  }

  #show(texts: readonly TaggedText[]): void {
    for (const { kind, text } of texts) {
      if (text === "") continue;
      this.#emitEmptyCalls();
      this.#openBlock(kind);
      this.#take({ type: `${kind}-delta`, text });
    }
  }

  /** Ends a block with the provider's data. A block may be data alone. */
  #endBlock(kind: BlockKind, data: Data = {}): void {
    const hasData = Object.keys(data).some((name) => name !== "itemId");
    if (this.#block !== kind && (!hasData || kind === "text")) return;
    this.#openBlock(kind);
    this.#closeBlock(Object.keys(data).length > 0 ? data : undefined);
  }

  #openBlock(kind: BlockKind): void {
    if (this.#block !== kind) this.#closeBlock();
    this.#block = kind;
  }

  #closeBlock(data = this.#data): void {
    const block = this.#block;
    this.#block = undefined;
    this.#data = undefined;
    if (block === undefined) return;
    const metadata = this.#own(data);
    this.#take({ type: `${block}-end`, ...(metadata && { metadata }) });
  }

  #own(data: Data | undefined): ProviderMetadata | undefined {
    return data && { ...this.#owner, data };
  }

  #beginCall(id: string, tool: string, data?: Data): OpenCall {
    this.close();
    this.#emitEmptyCalls();
    const metadata = this.#own(data);
    return this.#startCall(id, tool, metadata && { metadata });
  }

  #startCall(id: string, tool: string, more?: { metadata: ProviderMetadata } | { markup: string }): OpenCall {
    const call = { id, tool, arguments: new CallArguments(), isEmitted: false };
    this.#calls.set(id, call);
    this.#take({ type: "call-start", providerCallId: id, tool, ...more });
    return call;
  }

  #continueCall(call: OpenCall | undefined, delta: string): void {
    if (call === undefined || call.isEmitted) return;
    this.#output.push(delta);
    call.arguments.add(delta);
    // Arguments with balanced braces that do not parse may still become valid.
    if (call.arguments.isWhole && parseArguments(call.arguments.raw).problem === undefined)
      this.#emitCall(call);
  }

  /** Adds a call that was not streamed, or whose arguments were not. */
  #endCall({ toolCallId: id, toolName, input }: StreamPart & { type: "tool-call" }): void {
    const call = this.#calls.get(id) ?? this.#beginCall(id, toolName);
    if (call.arguments.raw === "") this.#continueCall(call, input);
  }

  /** Emits calls with an empty object as arguments. Once the next block begins, the arguments cannot continue. */
  #emitEmptyCalls(): void {
    for (const call of this.#calls.values()) {
      if (!call.isEmitted && call.arguments.isEmptyObject) this.#emitCall(call);
    }
  }

  #finish(reason: FinishReason): void {
    // After any other finish reason, a call without arguments may have been cut off.
    const isWhole = reason === "stop" || reason === "tool-calls" || reason === "unknown";
    if (isWhole || reason === "length") this.#emitTextCalls(reason);
    this.close();
    for (const call of this.#calls.values()) {
      if (!call.isEmitted) this.#emitCall(call, isWhole ? undefined : reason);
    }
    const called = this.#calls.size > 0 && isWhole;
    this.endReason = called ? "tool-calls" : reason === "tool-calls" ? "stop" : reason;
  }

  /** Emits the calls at the end of the text. */
  #emitTextCalls(reason: FinishReason): void {
    const { shown, calls, cut } = this.#text.end(reason === "length");
    this.#show(shown);
    if (calls.length > 0 || cut !== undefined) this.#closeBlock();
    for (const { name, raw, markup } of calls) {
      const call = this.#startCall(newCallId(), name, { markup });
      call.arguments.add(raw);
      this.#emitCall(call);
    }
    if (cut !== undefined)
      this.#emitCall(this.#startCall(newCallId(), cut.tool, { markup: cut.markup }), reason);
  }

  /** Emits a call, which was cut off if there is a reason for it. */
  #emitCall(call: OpenCall, cutOff?: FinishReason): void {
    call.isEmitted = true;
    const { id: providerCallId, tool } = call;
    const { raw } = call.arguments;
    const event = { type: "call", providerCallId, tool, raw } as const;
    if (cutOff !== undefined)
      return this.#take({ ...event, input: undefined, problem: describeCutOff(raw, cutOff) });
    const { input, problem } = parseArguments(raw);
    if (problem === undefined) return this.#take({ ...event, input });
    const advice = `The arguments of ${tool} are ${problem}. Call it again.`;
    this.#take({ ...event, input, problem: advice, isMalformed: true });
  }
}

const newCallId = (): string => `call_${randomUuid()}`;

/** Returns the data that is passed through a part of the SDK. */
function dataOf({ providerMetadata = {} }: Pick<Finish, "providerMetadata">) {
  const [data] = Object.values(providerMetadata);
  return data && providerDataSchema.parse(data);
}

function toTokens({ inputTokens, outputTokens }: Finish["usage"]): Tokens | undefined {
  const { noCache: input, cacheRead: read = 0, cacheWrite: write = 0 } = inputTokens;
  const { text: output = 0, reasoning = 0 } = outputTokens;
  return input === undefined ? undefined : { input, output, reasoning, cache: { read, write } };
}
