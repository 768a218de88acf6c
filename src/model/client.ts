import type { LanguageModel } from "ai";
import { Connection } from "./connection.ts";
import type { Send } from "./http.ts";
import { quirksOf, type Quirks } from "./quirks.ts";
import { adaptBody } from "./request-body.ts";
import { Conversions } from "./to-model-messages.ts";

/** Where and how a model is asked. */
export interface Endpoint {
  readonly provider: string;
  readonly baseURL: string;
  readonly apiKey?: string;
  readonly headers: Readonly<Record<string, string>>;
  /** What the provider calls the model. */
  readonly modelId: string;
  /** Options of the model and its variant, added to each request. */
  readonly options: Readonly<Record<string, unknown>>;
  /** False where the server refuses to be asked for usage. */
  readonly asksForUsage?: boolean;
  /** Silence after which the call counts as failed. */
  readonly stallMs: number;
}

/** The SDK's model at an endpoint. */
export interface Client {
  readonly model: LanguageModel;
  readonly connection: Connection;
  readonly quirks: Quirks;
  readonly conversions: Conversions;
}

/** The name under which options travel through the SDK. */
export const sdkName = "fairlead";

/** Loads what the first call needs, so that it need not wait. */
export async function loadSdk() {
  const { sdk } = await import("./sdk.ts");
  // It writes warnings to stdout, where only the protocol may speak.
  Reflect.set(globalThis, "AI_SDK_LOG_WARNINGS", false);
  return sdk;
}

export type Sdk = Awaited<ReturnType<typeof loadSdk>>;

/**
 * One client for each model that is asked, as long as the configuration lives. The SDK builds its parsers anew for
 * each client, which takes longer than all else before a request.
 */
export class Clients {
  readonly #send: Send;
  readonly #clients = new Map<string, Client>();

  constructor(send: Send) {
    this.#send = send;
  }

  for(endpoint: Endpoint, sdk: Sdk): Client {
    const { provider, baseURL, apiKey, modelId, headers } = endpoint;
    const name = JSON.stringify([provider, baseURL, apiKey, modelId, headers]);
    const client = this.#clients.get(name) ?? this.#create(endpoint, sdk);
    this.#clients.set(name, client);
    return client;
  }

  #create({ provider, baseURL, apiKey, headers, modelId, asksForUsage = true }: Endpoint, sdk: Sdk): Client {
    const quirks = quirksOf(provider, new URL(baseURL).hostname, modelId);
    const connection = new Connection(this.#send);
    const compatible = sdk.createOpenAICompatible({
      name: sdkName,
      baseURL,
      apiKey,
      headers,
      includeUsage: asksForUsage && quirks.asksForUsage,
      fetch: connection.fetch,
      transformRequestBody: (body) => adaptBody(body, quirks),
    });
    return { model: compatible.chatModel(modelId), connection, quirks, conversions: new Conversions() };
  }
}
