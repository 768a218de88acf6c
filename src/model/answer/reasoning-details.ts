import { type ReasoningDetail, reasoningDetailSchema } from "../../message/part.ts";

/** Maximum size of all details of one answer, in characters of JSON. Larger ones are dropped: a part of them is useless. */
const sizeLimit = 1024 * 1024;

/** Fields that are streamed in fragments. */
const streamedFields = new Set(["text", "summary"]);

/** Sent complete, never in fragments. */
const encrypted = "reasoning.encrypted";

/** Joins streamed fragments of `reasoning_details` to complete details. */
export class ReasoningRecord {
  readonly #details: ReasoningDetail[] = [];
  #length = 0;

  add(pieces: readonly unknown[]): void {
    for (const piece of pieces) {
      const { data } = reasoningDetailSchema.safeParse(piece);
      if (data !== undefined) this.#append(data);
    }
  }

  /** Undefined if there were none, or if they exceed the limit. */
  get details(): ReasoningDetail[] | undefined {
    return this.#details.length === 0 || this.#length > sizeLimit ? undefined : this.#details;
  }

  #append(piece: ReasoningDetail): void {
    if (this.#length > sizeLimit) return;
    this.#length += JSON.stringify(piece).length;
    const last = this.#details.at(-1);
    if (last !== undefined && continues(last, piece)) join(last, piece);
    else this.#details.push({ ...piece });
  }
}

/** Returns whether a fragment continues the last detail: same type and index, and no different id. */
function continues(last: ReasoningDetail, piece: ReasoningDetail): boolean {
  const isNamedAnew = isSet(last.id) && isSet(piece.id) && last.id !== piece.id;
  const isSameKind = last.type === piece.type && last.type !== encrypted;
  return isSameKind && last.index === piece.index && !isNamedAnew;
}

function join(last: ReasoningDetail, piece: ReasoningDetail): void {
  for (const [key, value] of Object.entries(piece)) {
    const before = last[key];
    const isMore = streamedFields.has(key) && typeof before === "string" && typeof value === "string";
    if (isMore) last[key] = before + value;
    else if (isSet(value)) last[key] = value;
  }
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null;
