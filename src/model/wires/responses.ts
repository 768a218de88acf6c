import { createOpenAI } from "@ai-sdk/openai";
import { isRecord } from "../../base/text/record.ts";
import { AnswerReader, type Json, streamFailure, textOf } from "./answer-reader.ts";
import type { CreateWire } from "./wire.ts";

/**
 * OpenAI Responses without server-side state: reasoning is sent back encrypted, and ids of the server's items are never
 * sent.
 */
export const createWire: CreateWire = ({ endpoint, fetch }) => ({
  model: createOpenAI({
    baseURL: endpoint.baseURL,
    apiKey: endpoint.apiKey ?? "",
    headers: { ...endpoint.headers },
    fetch,
  }).responses(endpoint.modelId),
  adapt: (params, { model, cacheKey, isRefused, options }) => ({
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
  }),
});

/** Items of an answer that the SDK reads, by kind. */
const itemTypes: ReadonlySet<unknown> = new Set(["message", "reasoning", "function_call"]);

/** Reads the events of a response. Servers leave out ids, indexes and repeated contents that the SDK's schema requires. */
export class Reader extends AnswerReader {
  readonly #open = new Map<number, Json>();

  protected read(event: Json): void {
    const index = typeof event.output_index === "number" ? event.output_index : 0;
    switch (event.type) {
      case "response.output_item.added":
        return this.#openItem(index, event.item);
      case "response.output_item.done":
        return this.#close(index, event.item);
      case "response.output_text.delta":
      case "response.refusal.delta":
        return this.#appendText(index, event);
      case "response.reasoning_summary_part.added":
        return this.#openSummary(index, event);
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return this.#appendReasoning(index, event);
      case "response.function_call_arguments.delta":
        return this.#appendArguments(index, textOf(event.delta));
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
    // The encrypted content is complete when the item is.
    const added = toItem(index, { ...item, encrypted_content: undefined });
    this.write({ type: "response.output_item.added", output_index: index, item: added });
  }

  /** Opens an item that the server did not announce. */
  #ensure(index: number, type: string): string {
    if (!this.#open.has(index)) this.#openItem(index, { type });
    return itemId(index, this.#open.get(index));
  }

  #appendText(index: number, { type, delta }: Json): void {
    const item_id = this.#ensure(index, "message");
    this.append(`${String(type)} ${index}`, textOf(delta), (delta) => ({
      type,
      item_id,
      output_index: index,
      delta,
    }));
  }

  #openSummary(index: number, { summary_index }: Json): void {
    const item_id = this.#ensure(index, "reasoning");
    const at = typeof summary_index === "number" ? summary_index : 0;
    if (at > 0) {
      const done = { item_id, output_index: index, summary_index: at - 1 };
      this.write({ ...done, type: "response.reasoning_summary_part.done" });
    }
    this.write({
      type: "response.reasoning_summary_part.added",
      item_id,
      output_index: index,
      summary_index: at,
    });
  }

  /** The plain reasoning of open models streams as the summary does, which is what the SDK reads. */
  #appendReasoning(index: number, { delta, summary_index }: Json): void {
    const item_id = this.#ensure(index, "reasoning");
    const at = typeof summary_index === "number" ? summary_index : 0;
    this.append(`reasoning ${index} ${at}`, textOf(delta), (delta) => ({
      type: "response.reasoning_summary_text.delta",
      item_id,
      output_index: index,
      summary_index: at,
      delta,
    }));
  }

  #appendArguments(index: number, text: string): void {
    const item_id = itemId(index, this.#open.get(index));
    this.append(`arguments ${index}`, text, (delta) => ({
      type: "response.function_call_arguments.delta",
      item_id,
      output_index: index,
      delta,
    }));
  }

  #close(index: number, item: unknown): void {
    if (!isRecord(item) || !itemTypes.has(item.type)) return;
    if (!this.#open.has(index)) this.#readItem(index, item);
    this.hasOutput ||= item.type === "function_call";
    const done = toItem(index, { ...this.#open.get(index), ...item });
    this.write({
      type: "response.output_item.done",
      output_index: index,
      item: { ...done, ...(item.type === "function_call" && { status: "completed" }) },
    });
    this.#open.delete(index);
  }

  #finish(response: unknown): void {
    const { usage, incomplete_details: incomplete, error, output } = isRecord(response) ? response : {};
    if (isRecord(error)) throw streamFailure(error);
    if (isRecord(usage)) this.notes.reportUsage(usage);
    // Some gateways send the items only here.
    if (!this.hasOutput && Array.isArray(output)) this.#readOutput(output);
    const reason = isRecord(incomplete) ? textOf(incomplete.reason) : "";
    this.hasFinish = true;
    this.isDone = true;
    this.write({
      type: "response.completed",
      response: { incomplete_details: reason === "" ? null : { reason } },
    });
  }

  /** Reads a response that was not streamed. */
  #readWhole(response: Json): void {
    if (response.error !== undefined && response.error !== null) throw streamFailure(response);
    if (Array.isArray(response.output)) this.#finish(response);
    else if (response.detail !== undefined || response.message !== undefined) throw streamFailure(response);
  }

  #readOutput(output: readonly unknown[]): void {
    for (const [index, item] of output.entries()) {
      if (isRecord(item)) this.#close(index, item);
    }
  }

  /** Writes the contents of an item that arrived whole. */
  #readItem(index: number, item: Json): void {
    this.#openItem(index, { ...item, arguments: "" });
    const contents = [item.content, item.summary].flatMap((list) => (Array.isArray(list) ? list : []));
    for (const content of contents.filter(isRecord)) {
      const delta = textOf(content.text) || textOf(content.refusal);
      if (item.type === "reasoning") this.#appendReasoning(index, { delta });
      else {
        const type = content.type === "refusal" ? "response.refusal.delta" : "response.output_text.delta";
        this.#appendText(index, { type, delta });
      }
    }
    this.#appendArguments(index, textOf(item.arguments));
  }
}

const itemId = (index: number, item: Json | undefined): string => textOf(item?.id) || `item_${index}`;

/** Returns the fields of an item that the SDK reads. */
function toItem(index: number, item: Json): Json {
  const id = itemId(index, item);
  switch (item.type) {
    case "message":
      return { type: "message", id, ...(textOf(item.phase) && { phase: item.phase }) };
    case "reasoning":
      return { type: "reasoning", id, encrypted_content: textOf(item.encrypted_content) || null };
    default: {
      const call_id = textOf(item.call_id) || id;
      const name = textOf(item.name).trim();
      return { type: "function_call", id, call_id, name, arguments: textOf(item.arguments) };
    }
  }
}
