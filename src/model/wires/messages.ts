import { createAnthropic } from "@ai-sdk/anthropic";
import { isRecord } from "../../base/text/record.ts";
import { invalidResponse, ProviderFailure } from "../failure.ts";
import { AnswerReader, type Data, type Json, streamFailure, textOf } from "./answer-reader.ts";
import { type Adapt, type CallParams, cacheMarkIndexes, type CreateModel } from "./wire.ts";

/** Anthropic Messages: prompt cache by marks, thinking with signatures. */
export const createModel: CreateModel = ({ endpoint, fetch }) =>
  createAnthropic({
    baseURL: endpoint.baseURL,
    apiKey: endpoint.apiKey ?? "",
    headers: { ...endpoint.headers },
    fetch,
  })(endpoint.modelId);

export const adapt: Adapt = (params, { quirks, isRefused, options: all }) => {
  const { reasoningEffort: effort, ...options } = all;
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
        // Only Anthropic's server is known to support the field that streams inputs.
        toolStreaming: quirks.streamsToolInput,
        ...(budget && { thinking: { type: "enabled", budgetTokens: budget } }),
        ...options,
      },
    },
  };
};

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

/** Kinds of blocks that are read; others are tools of the server. */
const blockTypes: ReadonlySet<unknown> = new Set(["text", "thinking", "redacted_thinking", "tool_use"]);

/** An open block. */
interface Block {
  readonly type: unknown;
  /** The id of a call. */
  readonly id: string;
  readonly name: string;
  /** What the provider wants back with its thinking. */
  data: Data;
}

/** Reads the events of a message. Servers leave out indexes, starts of messages and blocks, and ends of blocks. */
export class Reader extends AnswerReader {
  readonly #open = new Map<number, Block>();
  /** The id of the answer. */
  #id = "";
  #last = -1;

  protected read(event: Json): void {
    const { type, usage, delta, message } = event;
    this.reportUsage(usage);
    switch (type) {
      case "message_start":
        return isRecord(message) ? this.#start(message) : undefined;
      case "content_block_start":
        return this.#openBlock(this.#indexOf(event), event.content_block);
      case "content_block_delta":
        return this.#append(this.#indexOf(event), delta);
      case "content_block_stop":
        return this.#closeBlock(this.#indexOf(event));
      case "message_delta":
        return isRecord(delta) && textOf(delta.stop_reason)
          ? this.stop(textOf(delta.stop_reason))
          : undefined;
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

  protected override endWithoutFinish(): void {
    if (this.isDone && this.hasOutput) this.stop("end_turn");
    else super.endWithoutFinish();
  }

  protected override endCalls(): void {
    for (const index of this.#open.keys()) this.#closeBlock(index);
  }

  /** Gateways may repeat the start. The start of another answer means that they began again: its blocks would mix. */
  #start({ id, usage }: Json): void {
    if (this.#open.size > 0 && this.#id !== textOf(id)) {
      throw new ProviderFailure(invalidResponse("The provider began another answer within this one.", true));
    }
    this.#id = textOf(id);
    this.reportUsage(usage);
  }

  #indexOf({ index, type }: Json): number {
    if (typeof index === "number") return index;
    return type === "content_block_start" ? this.#last + 1 : Math.max(this.#last, 0);
  }

  #openBlock(index: number, start: unknown): void {
    if (!isRecord(start)) return;
    const { type, data, input } = start;
    const block: Block = {
      type,
      id: textOf(start.id) || `call_${index}`,
      name: textOf(start.name).trim(),
      data: type === "redacted_thinking" ? { redactedData: textOf(data) } : {},
    };
    this.#open.set(index, block);
    this.#last = index;
    if (type === "tool_use") {
      this.hasOutput = true;
      this.startCall(block.id, block.name);
    }
    this.#append(index, { type: "text_delta", text: type === "text" ? start.text : "" });
    this.#append(index, { type: "thinking_delta", thinking: start.thinking });
    this.#append(index, { type: "signature_delta", signature: start.signature });
    if (isRecord(input) && Object.keys(input).length > 0)
      this.#append(index, { type: "input_json_delta", partial_json: JSON.stringify(input) });
  }

  #append(index: number, delta: unknown): void {
    if (!isRecord(delta)) return;
    const { field, opens } = deltas.get(delta.type) ?? {};
    const text = field === undefined ? "" : textOf(delta[field]);
    if (text === "") return;
    if (!this.#open.has(index)) this.#openBlock(index, { type: opens });
    const block = this.#open.get(index);
    if (block === undefined || !blockTypes.has(block.type)) return;
    if (field === "text") this.append("text-delta", "text", text);
    else if (field === "thinking") this.append("reasoning-delta", "reasoning", text);
    else if (block.type !== opens) return;
    else if (field === "signature") block.data = { signature: text };
    else this.append("tool-input-delta", block.id, text);
  }

  #closeBlock(index: number): void {
    const { type, id = "", name = "", data = {} } = this.#open.get(index) ?? {};
    this.#open.delete(index);
    if (Object.keys(data).length > 0) this.endBlock("reasoning", data);
    // A call without arguments has none in the stream.
    if (type === "tool_use") this.emit({ type: "tool-call", toolCallId: id, toolName: name, input: "{}" });
  }

  /** Reads a message that was not streamed. */
  #readWhole({ content, stop_reason: reason }: Json): void {
    for (const [index, block] of (Array.isArray(content) ? content : []).entries()) {
      this.#openBlock(index, block);
      this.#closeBlock(index);
    }
    this.stop(textOf(reason) || "end_turn");
    this.isDone = true;
  }
}

/** The text of each delta, and the block to which it belongs. */
const deltas: ReadonlyMap<unknown, { field: string; opens: string }> = new Map([
  ["text_delta", { field: "text", opens: "text" }],
  ["thinking_delta", { field: "thinking", opens: "thinking" }],
  ["signature_delta", { field: "signature", opens: "thinking" }],
  ["input_json_delta", { field: "partial_json", opens: "tool_use" }],
]);
