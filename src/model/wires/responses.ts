import { createOpenAI } from "@ai-sdk/openai";
import { parseJson } from "../../base/text/json.ts";
import { isRecord, recordOf, recordsIn } from "../../base/text/record.ts";
import { AnswerReader, type DeltaType, failOnError, type Json, textOf } from "./answer-reader.ts";
import type { Wire } from "./wire.ts";

/**
 * OpenAI Responses without server-side state: reasoning is sent back encrypted, and ids of the server's items are never
 * sent.
 */
export const createModel: Wire["createModel"] = (settings, { endpoint }) =>
  createOpenAI(settings).responses(endpoint.modelId);

export const adapt: Wire["adapt"] = (params, { model, cacheKey, isRefused, options }) => ({
  ...params,
  // The schemas of tools have optional parameters, which strict mode does not know.
  ...(params.tools && { tools: params.tools.map((tool) => ({ ...tool, strict: false })) }),
  providerOptions: {
    openai: {
      store: false,
      ...(params.tools && { parallelToolCalls: true }),
      ...(model.abilities.reasoning && {
        forceReasoning: !isRefused("sealed"),
        reasoningSummary: isRefused("summary") ? null : "auto",
      }),
      ...(cacheKey !== undefined && !isRefused("cache-key") && { promptCacheKey: cacheKey }),
      ...options,
    },
  },
});

/** Sends plain reasoning, which has no encrypted content, as the content of its item: the SDK writes it as a summary. */
export function rewriteBody(text: string): string {
  if (!text.includes('"encrypted_content":""')) return text;
  const body = parseJson(text);
  if (!isRecord(body)) return text;
  return JSON.stringify({ ...body, input: recordsIn(body.input).map(toPlainReasoning) });
}

function toPlainReasoning(item: Json): Json {
  if (item.encrypted_content !== "") return item;
  const { encrypted_content: _, summary, ...rest } = item;
  const text = recordsIn(summary).map((part) => textOf(part.text));
  return { ...rest, summary: [], content: [{ type: "reasoning_text", text: text.join("\n\n") }] };
}

/** Items of an answer that are read; others are tools of the server. */
const itemTypes: ReadonlySet<unknown> = new Set(["message", "reasoning", "function_call"]);

/** Reads the events of a response. Servers leave out ids, indexes, starts of items and repeated contents. */
export class Reader extends AnswerReader {
  protected override readonly mayLackReason = false;
  /** Open items by index. */
  readonly #open = new Map<number, Json>();
  #hasCall = false;

  protected read(event: Json): void {
    failOnError(event);
    const { type, delta, item, output } = event;
    const index = typeof event.output_index === "number" ? event.output_index : 0;
    const response = recordOf(event.response);
    switch (type) {
      case "response.output_item.added":
        return this.#openItem(index, item);
      case "response.output_item.done":
        return this.#closeItem(index, item);
      case "response.refusal.delta":
        this.hasRefusal = true;
        return this.#append("text-delta", index, delta);
      case "response.output_text.delta":
        return this.#append("text-delta", index, delta);
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return this.#append("reasoning-delta", index, delta);
      case "response.function_call_arguments.delta":
        return this.#append("tool-input-delta", index, delta);
      case "response.reasoning_summary_part.added":
        // Each part of a summary is a block.
        if (Number(event.summary_index) > 0)
          this.endBlock("reasoning", { itemId: itemId(index, this.#open.get(index)) });
        return undefined;
      case "response.completed":
      case "response.incomplete":
      case "response.done":
        return this.#finish(response);
      case "response.failed":
        return failOnError({ ...response, type: "error" });
      case undefined:
        // A response that was not streamed.
        return Array.isArray(output) ? this.#finish(event) : undefined;
    }
  }

  #openItem(index: number, item: unknown): void {
    if (!isRecord(item) || !itemTypes.has(item.type)) return;
    this.#open.set(index, item);
    if (item.type === "function_call") this.startCall(callId(index, item), item.name);
  }

  /** Appends to an item, which the server may not have announced. */
  #append(type: DeltaType, index: number, delta: unknown): void {
    const item = this.#open.get(index);
    if (item === undefined && type === "tool-input-delta") return;
    if (item === undefined) this.#openItem(index, { type: type === "text-delta" ? "message" : "reasoning" });
    this.append(type, item?.type === "function_call" ? callId(index, item) : type, textOf(delta));
  }

  #closeItem(index: number, done: unknown): void {
    if (!isRecord(done) || !itemTypes.has(done.type)) return;
    if (!this.#open.has(index)) this.#readItem(index, done);
    const item = { ...this.#open.get(index), ...done };
    this.#open.delete(index);
    const phase = textOf(item.phase);
    const sealed = textOf(item.encrypted_content);
    if (item.type === "message") return this.endBlock("text", phase === "" ? {} : { phase });
    if (item.type === "reasoning")
      return this.endBlock("reasoning", {
        itemId: itemId(index, item),
        ...(sealed !== "" && { reasoningEncryptedContent: sealed }),
      });
    this.hasOutput = true;
    this.#hasCall = true;
    this.endCall(callId(index, item), item.name, textOf(item.arguments));
  }

  /** Reads the contents of an item that arrived whole. */
  #readItem(index: number, item: Json): void {
    this.#openItem(index, item);
    for (const content of [...recordsIn(item.content), ...recordsIn(item.summary)]) {
      this.hasRefusal ||= content.type === "refusal";
      const text = textOf(content.text) || textOf(content.refusal);
      this.#append(item.type === "reasoning" ? "reasoning-delta" : "text-delta", index, text);
    }
  }

  #finish(response: Json): void {
    const { usage, incomplete_details: incomplete, output } = response;
    failOnError(response);
    this.reportUsage(usage);
    // Some gateways send the items only here.
    if (!this.hasOutput)
      for (const [index, item] of recordsIn(output).entries()) this.#closeItem(index, item);
    const end = this.hasRefusal && !this.#hasCall ? "refusal" : "completed";
    this.stop(textOf(recordOf(incomplete).reason) || end);
    this.isDone = true;
  }
}

const itemId = (index: number, item: Json = {}): string => textOf(item.id) || `item_${index}`;

const callId = (index: number, item: Json): string => textOf(item.call_id) || itemId(index, item);
