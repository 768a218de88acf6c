import type { Api } from "../../config/api.ts";
import { importModule } from "../../base/import-module.ts";
import type { AgentError } from "../../message/message.ts";
import { retryLocal } from "../catalog/local-server.ts";
import type { Send } from "../http.ts";
import { quirksOf, type Quirks } from "../quirks.ts";
import { AnswerNotes } from "./answer-notes.ts";
import type { AnswerReader } from "./answer-reader.ts";
import { createFetch } from "./fetch.ts";
import type { CreateWire, Endpoint, RefusedField, Wire } from "./wire.ts";

interface WireModule {
  readonly createWire: CreateWire;
  readonly Reader: new (notes: AnswerNotes) => AnswerReader;
}

/** Each API loads its part of the SDK when it is first used. */
const modules: Readonly<Record<Api, () => Promise<WireModule>>> = {
  chat: () => import("./chat.ts"),
  responses: () => import("./responses.ts"),
  messages: () => import("./messages.ts"),
};

/**
 * Caches one wire per endpoint for the lifetime of the configuration: the SDK builds its parser for chat completions for
 * each model, which takes longer than the rest of the preparation of a request.
 */
export class Wires {
  readonly #send: Send;
  readonly #open = new Map<string, Promise<Wire>>();
  readonly #notes = new WeakMap<AbortSignal, AnswerNotes>();
  readonly refused = new RefusedFields();

  constructor(send: Send) {
    this.#send = retryLocal(send);
  }

  /** Returns the wire to an endpoint. What its next answer to a request with this signal says is noted in `notes`. */
  for(endpoint: Endpoint, signal: AbortSignal, notes: AnswerNotes): Promise<Wire> {
    this.#notes.set(signal, notes);
    const { provider, api, baseURL, apiKey, modelId, headers } = endpoint;
    const name = JSON.stringify([provider, api, baseURL, apiKey, modelId, headers]);
    const known = this.#open.get(name);
    if (known !== undefined) return known;
    const wire = this.#create(endpoint);
    this.#open.set(name, wire);
    // A module that could not be loaded is tried again.
    wire.catch(() => this.#open.delete(name));
    return wire;
  }

  async #create(endpoint: Endpoint): Promise<Wire> {
    const { createWire, Reader } = await importModule(modules[endpoint.api ?? "chat"]);
    const fetch = createFetch(
      this.#send,
      (signal) => new Reader(this.#notes.get(signal) ?? new AnswerNotes(() => {})),
    );
    const isRefused = (field: RefusedField) => this.refused.has({ ...endpoint, cacheKey: undefined }, field);
    return createWire({ endpoint, quirks: quirksFor(endpoint), fetch, isRefused });
  }
}

export const quirksFor = ({ provider, baseURL, modelId }: Endpoint): Quirks =>
  quirksOf(provider, new URL(baseURL).hostname, modelId);

/** What an error says if a server rejects the field. */
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
class RefusedFields {
  readonly #refused = new Set<string>();

  has(address: Address, field: RefusedField): boolean {
    return this.#refused.has(nameOf(address, field));
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
