import type { AgentError } from "../../message/message.ts";

/** An endpoint's model. */
interface Address {
  readonly baseURL: string;
  readonly modelId: string;
}

/** Parts of a request that a server may reject, and without which the request works. */
export type RefusedField = "cache" | "cache-key" | "summary" | "thoughts";

/** What an error says if a server rejects the field. */
const refusals: readonly (readonly [field: RefusedField, words: RegExp])[] = [
  ["cache", /cache_control/i],
  ["cache-key", /prompt_cache_key/i],
  ["summary", /reasoning[._ ]summar/i],
  ["thoughts", /reasoning_content|reasoning_details|thinking_blocks|["'`]reasoning["'`]/i],
  // Thoughts of an earlier session whose key or organization differs.
  ["thoughts", /invalid .?signature|encrypted[_ ]content/i],
];

/** Remembers which fields a server rejected for a model. */
export class RefusedFields {
  readonly #refused = new Map<string, Set<RefusedField>>();

  has(address: Address, field: RefusedField): boolean {
    return this.#refused.get(nameOf(address))?.has(field) ?? false;
  }

  /** Returns whether the request is worth repeating: the error names a field that will not be sent again. */
  add(address: Address, { status, message }: AgentError): boolean {
    if (status !== 400 && status !== 422) return false;
    const refused = this.#refused.get(nameOf(address)) ?? new Set<RefusedField>();
    const found = refusals.find(([field, words]) => words.test(message) && !refused.has(field));
    if (found === undefined) return false;
    this.#refused.set(nameOf(address), refused.add(found[0]));
    return true;
  }
}

const nameOf = ({ baseURL, modelId }: Address): string => `${baseURL} ${modelId}`;
