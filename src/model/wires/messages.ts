import { createAnthropic } from "@ai-sdk/anthropic";
import { isRecord, recordOf, recordsIn } from "../../base/text/record.ts";
import { invalidResponse, ProviderFailure } from "../failure.ts";
import { cacheMarkIndexes } from "../request/cache-marks.ts";
import { isEffort, thinkingBudget } from "../request/token-limits.ts";
import { AnswerReader, failOnError, type Json, textOf } from "./answer-reader.ts";
import type { CallParams, Wire } from "./wire.ts";

/** Anthropic Messages: prompt cache by marks, thinking with signatures. */
export const createModel: Wire["createModel"] = (settings, { endpoint }) =>
  createAnthropic(settings)(endpoint.modelId);

export const adapt: Wire["adapt"] = (params, { quirks, isRefused, options: all }) => {
  const { reasoningEffort: effort, ...options } = all;
  const limit = params.maxOutputTokens;
  const hasBudget = quirks.thinksByBudget && options.thinking === undefined && limit !== undefined;
  const budget = hasBudget && isEffort(effort) ? thinkingBudget(effort, limit) : undefined;
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

/** The text of each delta, and the block to which it belongs. */
const deltas: ReadonlyMap<unknown, { field: string; block: string }> = new Map([
  ["text_delta", { field: "text", block: "text" }],
  ["thinking_delta", { field: "thinking", block: "thinking" }],
  ["signature_delta", { field: "signature", block: "thinking" }],
  ["input_json_delta", { field: "partial_json", block: "tool_use" }],
]);

/** Kinds of blocks that are read; others are tools of the server. */
const blockTypes: ReadonlySet<unknown> = new Set(["text", "thinking", "redacted_thinking", "tool_use"]);

/** Reads the events of a message. Servers leave out indexes, starts of messages and blocks, and ends of blocks. */
export class Reader extends AnswerReader {
  /** Open blocks by index. */
  readonly #open = new Map<number, Json>();
  /** The id of the answer. */
  #id = "";
  #last = -1;

  protected read(event: Json): void {
    this.reportUsage(event.usage);
    failOnError(event);
    const { message, content_block: block } = event;
    const delta = recordOf(event.delta);
    switch (event.type) {
      case "message_start":
        return isRecord(message) ? this.#start(message) : undefined;
      case "content_block_start":
        return isRecord(block) ? this.#openBlock(this.#indexOf(event), block) : undefined;
      case "content_block_delta":
        return this.#append(this.#indexOf(event), delta);
      case "content_block_stop":
        return this.#closeBlock(this.#indexOf(event));
      case "message_delta":
        return this.stop(delta.stop_reason);
      case "message_stop":
        this.isDone = true;
        return undefined;
      case "message":
        return this.#readWhole(event);
    }
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

  #openBlock(index: number, block: Json): void {
    const { type, name, data, input } = block;
    this.#open.set(index, block);
    this.#last = index;
    this.hasOutput ||= type === "tool_use";
    if (type === "tool_use") this.startCall(callId(index, block), name);
    if (type === "redacted_thinking") this.endBlock("reasoning", { redactedData: textOf(data) });
    // The start may have content. An empty input is a placeholder.
    const hasInput = isRecord(input) && Object.keys(input).length > 0;
    const content = { ...block, partial_json: hasInput ? JSON.stringify(input) : "" };
    for (const delta of deltas.keys()) this.#append(index, { ...content, type: delta });
  }

  #append(index: number, delta: Json): void {
    const { field = "", block: type } = deltas.get(delta.type) ?? {};
    const text = textOf(delta[field]);
    if (text === "") return;
    if (!this.#open.has(index)) this.#openBlock(index, { type });
    const block = recordOf(this.#open.get(index));
    if (!blockTypes.has(block.type)) return;
    if (field === "text") this.append("text-delta", "text", text);
    else if (field === "thinking") this.append("reasoning-delta", "reasoning", text);
    else if (block.type !== type) return;
    else if (field === "signature") this.endBlock("reasoning", { signature: text });
    else this.append("tool-input-delta", callId(index, block), text);
  }

  #closeBlock(index: number): void {
    const block = recordOf(this.#open.get(index));
    this.#open.delete(index);
    // A call without arguments has none in the stream.
    if (block.type === "tool_use") this.endCall(callId(index, block), block.name, "{}");
  }

  /** Reads a message that was not streamed. */
  #readWhole({ content, stop_reason: reason }: Json): void {
    for (const [index, block] of recordsIn(content).entries()) {
      this.#openBlock(index, block);
      this.#closeBlock(index);
    }
    this.stop(textOf(reason) || "end_turn");
    this.isDone = true;
  }
}

const callId = (index: number, { id }: Json): string => textOf(id) || `call_${index}`;
