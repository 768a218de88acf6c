import type { Api } from "../../config/api.ts";
import { importModule } from "../../base/import-module.ts";
import { retryLocal } from "../catalog/local-server.ts";
import type { Send } from "../http.ts";
import { quirksOf, type Quirks } from "../quirks.ts";
import { AnswerNotes } from "./answer-notes.ts";
import type { AnswerReader } from "./answer-reader.ts";
import { createFetch } from "./fetch.ts";
import { type RefusedField, RefusedFields } from "./refused-fields.ts";
import type { CreateWire, Endpoint, Wire } from "./wire.ts";

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
    const isRefused = (field: RefusedField) => this.refused.has(endpoint, field);
    return createWire({ endpoint, quirks: quirksFor(endpoint), fetch, isRefused });
  }
}

export const quirksFor = ({ provider, baseURL, modelId }: Endpoint): Quirks =>
  quirksOf(provider, new URL(baseURL).hostname, modelId);
