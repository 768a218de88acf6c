import type { AgentError } from "../../message/message.ts";

/** Parts of a request that a server may reject, and without which the request works. */
export type RefusedField = "tool-choice" | "cache" | "cache-key" | "summary" | "sealed" | "thoughts";

/** Matches the error of a server that rejects the field. */
const refusals: readonly (readonly [field: RefusedField, words: RegExp])[] = [
  ["tool-choice", /tool_choice/i],
  ["cache", /cache_control/i],
  ["cache-key", /prompt_cache_key/i],
  ["summary", /reasoning[._ ]summar/i],
  ["sealed", /encrypted content is not supported|["'`]include["'`]/i],
  ["thoughts", /reasoning_content|reasoning_details|thinking_blocks|["'`]reasoning["'`]/i],
  // Thoughts that came with another key or organization.
  ["thoughts", /invalid .?signature|encrypted[_ ]content/i],
];

/** An endpoint's model, in a conversation. */
interface Address {
  readonly baseURL: string;
  readonly modelId: string;
  readonly cacheKey: string | undefined;
}

/** Remembers which fields a server rejected for a model; thoughts only for the conversation that has them. */
export class RefusedFields {
  readonly #refused = new Set<string>();

  has(address: Address, field: RefusedField): boolean {
    return this.#refused.size > 0 && this.#refused.has(nameOf(address, field));
  }

  /** Returns whether the request is worth repeating: the error names a field that will not be sent again. */
  add(address: Address, { status, message }: AgentError): boolean {
    if (status !== 400 && status !== 422) return false;
    const found = refusals.find(([field, words]) => words.test(message) && !this.has(address, field));
    if (found !== undefined) this.#refused.add(nameOf(address, found[0]));
    return found !== undefined;
  }
}

const nameOf = ({ baseURL, modelId, cacheKey }: Address, field: RefusedField): string =>
  JSON.stringify([baseURL, modelId, field, field === "thoughts" ? cacheKey : ""]);
