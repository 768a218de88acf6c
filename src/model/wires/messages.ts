import { createAnthropic } from "@ai-sdk/anthropic";
import { isRecord } from "../../base/text/record.ts";
import { invalidResponse, ProviderFailure } from "../failure.ts";
import { AnswerReader, type Json, streamFailure, textOf } from "./answer-reader.ts";
import { type CallParams, type CreateWire, cacheMarkIndexes } from "./wire.ts";

/** Anthropic Messages: prompt cache by marks, thinking with signatures. */
export const createWire: CreateWire = ({ endpoint, fetch }) => ({
  model: createAnthropic({
    baseURL: endpoint.baseURL,
    apiKey: endpoint.apiKey ?? "",
    headers: { ...endpoint.headers },
    fetch,
  })(endpoint.modelId),
  adapt: (params, { quirks, isRefused, options: { reasoningEffort: effort, ...options } }) => {
    const limit = params.maxOutputTokens;
    const budget =
      isEffort(effort) && quirks.thinksByBudget && options.thinking === undefined
        ? thinkingBudget(effort, limit)
        : undefined;
    return {
      ...(isRefused("cache") ? params : markCache(params)),
      ...(isEffort(effort) && { reasoning: budget === 0 ? "none" : effort }),
      // The SDK adds the budget to the limit, in which it is included.
      ...(budget !== undefined && limit !== undefined && { maxOutputTokens: limit - budget }),
      providerOptions: {
        anthropic: {
          // Other servers than Anthropic's may not know the field that streams inputs as they are written.
          toolStreaming: quirks.streamsToolInput,
          ...(budget && { thinking: { type: "enabled", budgetTokens: budget } }),
          ...options,
        },
      },
    };
  },
});

const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
const isEffort = (value: unknown): value is (typeof efforts)[number] =>
  efforts.some((effort) => effort === value);

type Effort = (typeof efforts)[number];

/** Share of the output limit that each effort may use for thinking. */
const budgetShares: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 0.02,
  low: 0.1,
  medium: 0.3,
  high: 0.6,
  xhigh: 0.9,
  max: 1,
};
/** https://platform.claude.com/docs/en/build-with-claude/extended-thinking */
const minBudget = 1_024;

/**
 * Returns the tokens to think with, which count towards the limit of output tokens; 0 to not think; undefined if the
 * limit is unknown. The rest of the answer keeps at least as much as the smallest budget.
 */
function thinkingBudget(effort: Effort, limit: number | undefined): number | undefined {
  if (limit === undefined) return undefined;
  const budget = Math.min(Math.max(Math.round(limit * budgetShares[effort]), minBudget), limit - minBudget);
  return effort === "none" || budget < minBudget ? 0 : budget;
}

const mark = { anthropic: { cacheControl: { type: "ephemeral" } } } as const;

/** Marks the last tool, the system text, and two messages: Anthropic accepts four marks. */
function markCache({ tools, prompt, ...params }: CallParams): CallParams {
  const marked = cacheMarkIndexes(prompt.map(({ role }) => role));
  return {
    ...params,
    prompt: prompt.map((message, index) =>
      marked.has(index) ? { ...message, providerOptions: mark } : message,
    ),
    ...(tools && {
      tools: tools.map((tool, index) =>
        tool.type === "function" && index === tools.length - 1 ? { ...tool, providerOptions: mark } : tool,
      ),
    }),
  };
}

const isIndex = (value: unknown): value is number => typeof value === "number";

/** Kinds of blocks that the SDK reads. */
const blockTypes: ReadonlySet<unknown> = new Set(["text", "thinking", "redacted_thinking", "tool_use"]);

/** Reads the events of a message. Servers leave out indexes, usage and starts of blocks that the SDK's schema requires. */
export class Reader extends AnswerReader {
  /** Types of the open blocks by index. */
  readonly #open = new Map<number, unknown>();
  /** The id of the answer. */
  #id = "";
  #hasStart = false;
  #last = -1;
  #stopReason: string | undefined;

  protected read(event: Json): void {
    const { type, usage, delta, message } = event;
    if (isRecord(usage)) this.notes.reportUsage(usage);
    switch (type) {
      case "message_start":
        if (isRecord(message)) this.#readStart(message);
        return this.#start();
      case "content_block_start":
        return this.#openBlock(this.#indexOf(event), event.content_block);
      case "content_block_delta":
        return this.#append(this.#indexOf(event), delta);
      case "content_block_stop":
        return this.#closeBlock(this.#indexOf(event));
      case "message_delta":
        if (isRecord(delta) && textOf(delta.stop_reason) !== "") this.#stop(textOf(delta.stop_reason));
        return undefined;
      case "message_stop":
        this.isDone = true;
        return undefined;
      case "message":
        return this.#readWhole(event);
      case "error":
        throw streamFailure(event.error ?? event);
      default:
        if (isRecord(event.error) || textOf(event.error) !== "") throw streamFailure(event);
    }
  }

  override end(): void {
    if (!this.hasFinish && this.isDone && this.hasOutput) this.#stop("end_turn");
    super.end();
    for (const index of this.#open.keys()) this.#closeBlock(index);
    const usage = { output_tokens: 0 };
    this.write({ type: "message_delta", delta: { stop_reason: this.#stopReason ?? null }, usage });
    this.write({ type: "message_stop" });
  }

  /** Gateways may repeat the start. The start of another answer means that they began again: its blocks would mix. */
  #readStart({ id, usage }: Json): void {
    if (this.#open.size > 0 && this.#id !== textOf(id)) {
      throw new ProviderFailure(invalidResponse("The provider began another answer within this one.", true));
    }
    this.#id = textOf(id);
    if (isRecord(usage)) this.notes.reportUsage(usage);
  }

  #start(): void {
    if (this.#hasStart) return;
    this.#hasStart = true;
    this.write({ type: "message_start", message: { id: "message", usage: { input_tokens: 0 } } });
  }

  #indexOf({ index, type }: Json): number {
    if (isIndex(index)) return index;
    return type === "content_block_start" ? this.#last + 1 : Math.max(this.#last, 0);
  }

  #openBlock(index: number, block: unknown): void {
    if (!isRecord(block)) return;
    this.#start();
    this.#open.set(index, block.type);
    this.#last = index;
    if (!blockTypes.has(block.type)) return;
    this.hasOutput ||= block.type === "tool_use";
    this.write({ type: "content_block_start", index, content_block: toBlock(index, block) });
    this.#append(index, { type: "text_delta", text: block.type === "text" ? block.text : "" });
    this.#append(index, { type: "thinking_delta", thinking: block.thinking });
    this.#append(index, { type: "signature_delta", signature: block.signature });
    const { input } = block;
    if (isRecord(input) && Object.keys(input).length > 0)
      this.#append(index, { type: "input_json_delta", partial_json: JSON.stringify(input) });
  }

  #append(index: number, delta: unknown): void {
    if (!isRecord(delta)) return;
    const [type, field, block] = deltaFields.get(delta.type) ?? [];
    if (type === undefined || field === undefined) return;
    const text = textOf(delta[field]);
    if (text === "") return;
    if (!this.#open.has(index)) this.#openBlock(index, { type: block });
    if (!blockTypes.has(this.#open.get(index))) return;
    const toEvent = (text: string) => ({
      type: "content_block_delta",
      index,
      delta: { type, [field]: text },
    });
    if (type === "signature_delta") this.write(toEvent(text));
    else this.append(`${type} ${index}`, text, toEvent);
  }

  #closeBlock(index: number): void {
    const type = this.#open.get(index);
    this.#open.delete(index);
    if (blockTypes.has(type)) this.write({ type: "content_block_stop", index });
  }

  #stop(reason: string): void {
    this.#start();
    this.hasFinish = true;
    this.#stopReason = reason;
  }

  /** Reads a message that was not streamed. */
  #readWhole({ content, stop_reason: reason }: Json): void {
    for (const [index, block] of (Array.isArray(content) ? content : []).entries()) {
      this.#openBlock(index, block);
      this.#closeBlock(index);
    }
    this.#stop(textOf(reason) || "end_turn");
    this.isDone = true;
  }
}

/** Deltas: the type and field that the SDK reads, and the block to which they belong. */
const deltaFields: ReadonlyMap<unknown, readonly [type: string, field: string, block: string]> = new Map([
  ["text_delta", ["text_delta", "text", "text"]],
  ["thinking_delta", ["thinking_delta", "thinking", "thinking"]],
  ["signature_delta", ["signature_delta", "signature", "thinking"]],
  ["input_json_delta", ["input_json_delta", "partial_json", "tool_use"]],
] as const);

/** Returns the fields of a block that the SDK reads. */
function toBlock(index: number, block: Json): Json {
  switch (block.type) {
    case "tool_use":
      return {
        type: "tool_use",
        id: textOf(block.id) || `call_${index}`,
        name: textOf(block.name).trim(),
        input: {},
      };
    case "redacted_thinking":
      return { type: "redacted_thinking", data: textOf(block.data) };
    case "thinking":
      return { type: "thinking", thinking: "" };
    default:
      return { type: "text", text: "" };
  }
}
