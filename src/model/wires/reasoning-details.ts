import { recordsIn } from "../../base/text/record.ts";
import { providerDataSchema } from "../../message/part.ts";
import { type Data, isSet, type Json } from "./answer-reader.ts";

/** Maximum size of all details of one answer, in characters of JSON. Larger ones are dropped: a part of them is useless. */
const sizeLimit = 1024 * 1024;

/** Fields of a delta with details that are sent back as they came: OpenRouter and MiniMax; LiteLLM. */
const detailFields = ["reasoning_details", "thinking_blocks"] as const;

/** Fields of a detail that are streamed in fragments. */
const streamedFields = new Set(["text", "summary", "thinking"]);

/** Sent complete, never in fragments. */
const wholeTypes: ReadonlySet<unknown> = new Set(["reasoning.encrypted", "redacted_thinking"]);

/** Joins streamed fragments of a provider's reasoning details to complete details. */
export class ReasoningDetails {
  readonly #details: Data[] = [];
  #field: (typeof detailFields)[number] | undefined;
  #length = 0;

  /** Adds the details of a delta. */
  add(delta: Json): void {
    this.#field ??= detailFields.find((field) => Array.isArray(delta[field]));
    if (this.#field === undefined) return;
    for (const record of recordsIn(delta[this.#field])) {
      const { data: fragment } = providerDataSchema.safeParse(record);
      if (fragment === undefined || this.#length > sizeLimit) continue;
      this.#length += JSON.stringify(fragment).length;
      const last = this.#details.at(-1);
      if (last !== undefined && continues(last, fragment)) join(last, fragment);
      else this.#details.push(fragment);
    }
  }

  /** The details under their field. Undefined if there were none, or if they exceed the limit. */
  get fields(): Data | undefined {
    if (this.#field === undefined || this.#details.length === 0 || this.#length > sizeLimit) return undefined;
    return { [this.#field]: this.#details };
  }
}

/** Returns whether a fragment continues the last detail: same type and index, and no different id. */
function continues(last: Data, fragment: Data): boolean {
  const hasOtherId = isSet(last.id) && isSet(fragment.id) && last.id !== fragment.id;
  const isSameKind = last.type === fragment.type && !wholeTypes.has(last.type);
  // A signature ends a thinking block.
  const isSigned = isSet(last.signature) && Boolean(fragment.thinking);
  return isSameKind && last.index === fragment.index && !hasOtherId && !isSigned;
}

function join(last: Data, fragment: Data): void {
  for (const [key, value] of Object.entries(fragment)) {
    const before = last[key];
    const isMore = streamedFields.has(key) && typeof before === "string" && typeof value === "string";
    if (isMore || isSet(value)) last[key] = isMore ? before + value : value;
  }
}
