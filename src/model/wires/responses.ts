import { createOpenAI } from "@ai-sdk/openai";
import { isRecord } from "../../base/text/record.ts";
import { AnswerReader, type Json, streamFailure, textOf } from "./answer-reader.ts";
import type { Adapt, CreateModel } from "./wire.ts";

/**
 * OpenAI Responses without server-side state: reasoning is sent back encrypted, and ids of the server's items are never
 * sent.
 */
export const createModel: CreateModel = ({ endpoint, fetch }) =>
  createOpenAI({
    baseURL: endpoint.baseURL,
    apiKey: endpoint.apiKey ?? "",
    headers: { ...endpoint.headers },
    fetch,
  }).responses(endpoint.modelId);

export const adapt: Adapt = (params, { model, cacheKey, isRefused, options }) => ({
  ...params,
  // The schemas of tools have optional parameters, which strict mode does not know.
  ...(params.tools && { tools: params.tools.map((tool) => ({ ...tool, strict: false })) }),
  providerOptions: {
    openai: {
      store: false,
      ...(params.tools && { parallelToolCalls: true }),
      ...(model.abilities.reasoning && { forceReasoning: !isRefused("sealed") }),
      ...(model.abilities.reasoning && { reasoningSummary: isRefused("summary") ? null : "auto" }),
      ...(cacheKey !== undefined && !isRefused("cache-key") && { promptCacheKey: cacheKey }),
      ...options,
    },
  },
});

/** Sends plain reasoning, which has no encrypted content, as the content of its item: the SDK writes it as a summary. */
export function rewriteBody(text: string): string {
  if (!text.includes('"encrypted_content":""')) return text;
  const body: unknown = JSON.parse(text);
  if (!isRecord(body) || !Array.isArray(body.input)) return text;
  return JSON.stringify({ ...body, input: body.input.map(toPlainReasoning) });
}

function toPlainReasoning(item: unknown): unknown {
  if (!isRecord(item) || item.encrypted_content !== "" || !Array.isArray(item.summary)) return item;
  const { encrypted_content: _, ...rest } = item;
  const texts = item.summary.map((part: unknown) => (isRecord(part) ? textOf(part.text) : ""));
  return { ...rest, summary: [], content: [{ type: "reasoning_text", text: texts.join("\n\n") }] };
}

/** Items of an answer that are read; others are tools of the server. */
const itemTypes: ReadonlySet<unknown> = new Set(["message", "reasoning", "function_call"]);

/** Reads the events of a response. Servers leave out ids, indexes, starts of items and repeated contents. */
export class Reader extends AnswerReader {
  /** Open items by index. */
  readonly #open = new Map<number, Json>();
  #hasCall = false;
  #hasRefusal = false;

  protected read(event: Json): void {
    const index = typeof event.output_index === "number" ? event.output_index : 0;
    switch (event.type) {
      case "response.output_item.added":
        return this.#openItem(index, event.item);
      case "response.output_item.done":
        return this.#closeItem(index, event.item);
      case "response.refusal.delta":
        this.#hasRefusal = true;
        return this.#append("text-delta", index, event.delta);
      case "response.output_text.delta":
        return this.#append("text-delta", index, event.delta);
      case "response.reasoning_summary_part.added":
        // Each part of a summary is a block.
        if (typeof event.summary_index === "number" && event.summary_index > 0)
          this.endBlock("reasoning", { itemId: itemId(index, this.#open.get(index)) });
        return undefined;
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return this.#append("reasoning-delta", index, event.delta);
      case "response.function_call_arguments.delta":
        return this.#append("tool-input-delta", index, event.delta);
      case "response.completed":
      case "response.incomplete":
      case "response.done":
        return this.#finish(event.response);
      case "response.failed":
        throw streamFailure(isRecord(event.response) ? (event.response.error ?? event) : event);
      case "error":
        throw streamFailure(event.error ?? event);
      default:
        if (event.type === undefined) this.#readWhole(event);
    }
  }

  #openItem(index: number, item: unknown): void {
    if (!isRecord(item) || !itemTypes.has(item.type)) return;
    this.#open.set(index, item);
    if (item.type === "function_call") this.startCall(callId(index, item), textOf(item.name).trim());
  }

  /** Appends to an item, which the server may not have announced. */
  #append(type: "text-delta" | "reasoning-delta" | "tool-input-delta", index: number, delta: unknown): void {
    const item = this.#open.get(index);
    if (item === undefined && type !== "tool-input-delta")
      this.#openItem(index, { type: type === "text-delta" ? "message" : "reasoning" });
    const id = item?.type === "function_call" ? callId(index, item) : type;
    if (item !== undefined || type !== "tool-input-delta") this.append(type, id, textOf(delta));
  }

  #closeItem(index: number, done: unknown): void {
    if (!isRecord(done) || !itemTypes.has(done.type)) return;
    if (!this.#open.has(index)) this.#readItem(index, done);
    const item = { ...this.#open.get(index), ...done };
    this.#open.delete(index);
    const sealed = textOf(item.encrypted_content);
    switch (item.type) {
      case "message":
        return this.endBlock("text", textOf(item.phase) ? { phase: textOf(item.phase) } : {});
      case "reasoning":
        return this.endBlock("reasoning", {
          itemId: itemId(index, item),
          ...(sealed && { reasoningEncryptedContent: sealed }),
        });
      case "function_call":
        this.hasOutput = true;
        this.#hasCall = true;
        return this.emit({
          type: "tool-call",
          toolCallId: callId(index, item),
          toolName: textOf(item.name).trim(),
          input: textOf(item.arguments),
        });
    }
  }

  #finish(response: unknown): void {
    const { usage, incomplete_details: incomplete, error, output } = isRecord(response) ? response : {};
    if (isRecord(error)) throw streamFailure(error);
    this.reportUsage(usage);
    // Some gateways send the items only here.
    if (!this.hasOutput && Array.isArray(output)) {
      for (const [index, item] of output.entries()) this.#closeItem(index, item);
    }
    const end = this.#hasRefusal && !this.#hasCall ? "refusal" : "completed";
    this.stop((isRecord(incomplete) && textOf(incomplete.reason)) || end);
    this.isDone = true;
  }

  /** Reads a response that was not streamed. */
  #readWhole(response: Json): void {
    if (response.error !== undefined && response.error !== null) throw streamFailure(response);
    if (Array.isArray(response.output)) this.#finish(response);
    else if (response.detail !== undefined || response.message !== undefined) throw streamFailure(response);
  }

  /** Reads the contents of an item that arrived whole. */
  #readItem(index: number, item: Json): void {
    this.#openItem(index, item);
    const contents = [item.content, item.summary].flatMap((list) => (Array.isArray(list) ? list : []));
    for (const content of contents.filter(isRecord)) {
      this.#hasRefusal ||= content.type === "refusal";
      const text = textOf(content.text) || textOf(content.refusal);
      this.#append(item.type === "reasoning" ? "reasoning-delta" : "text-delta", index, text);
    }
  }
}

const itemId = (index: number, item: Json = {}): string => textOf(item.id) || `item_${index}`;

const callId = (index: number, item: Json): string => textOf(item.call_id) || itemId(index, item);
