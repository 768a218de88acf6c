import { type ReasoningDetail, reasoningDetailSchema } from "../../message/part.ts";

/** All details of one answer together, in characters of JSON. Larger ones are not kept: a part of them is worth nothing. */
const limit = 1024 * 1024;

/** Fields whose pieces are joined. */
const texts = new Set(["text", "summary"]);

/** Comes whole, each time as a detail of its own. */
const encrypted = "reasoning.encrypted";

/** Puts the pieces of a provider's reasoning details together again as the provider would have sent them at once. */
export class ReasoningRecord {
  readonly #details: ReasoningDetail[] = [];
  #length = 0;

  add(pieces: readonly unknown[]): void {
    for (const piece of pieces) {
      const { data } = reasoningDetailSchema.safeParse(piece);
      if (data !== undefined) this.#keep(data);
    }
  }

  /** Undefined where there were none, or too many to keep. */
  get details(): ReasoningDetail[] | undefined {
    return this.#details.length === 0 || this.#length > limit ? undefined : this.#details;
  }

  #keep(piece: ReasoningDetail): void {
    if (this.#length > limit) return;
    this.#length += JSON.stringify(piece).length;
    const last = this.#details.at(-1);
    if (last !== undefined && continues(last, piece)) join(last, piece);
    else this.#details.push({ ...piece });
  }
}

/** A piece belongs to the last detail where kind and place are the same and no other name is given to it. */
function continues(last: ReasoningDetail, piece: ReasoningDetail): boolean {
  const isNamedAnew = isSet(last.id) && isSet(piece.id) && last.id !== piece.id;
  const isSameKind = last.type === piece.type && last.type !== encrypted;
  return isSameKind && last.index === piece.index && !isNamedAnew;
}

function join(last: ReasoningDetail, piece: ReasoningDetail): void {
  for (const [key, value] of Object.entries(piece)) {
    const before = last[key];
    const isMore = texts.has(key) && typeof before === "string" && typeof value === "string";
    if (isMore) last[key] = before + value;
    else if (isSet(value)) last[key] = value;
  }
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null;
