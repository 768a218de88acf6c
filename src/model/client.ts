import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModel } from "ai";
import type { Api } from "../config/api.ts";
import type { Message } from "../message/message.ts";
import { ModelConnection } from "./connection.ts";
import type { Send } from "./http.ts";
import { retryLocal } from "./catalog/local-server.ts";
import { quirksOf, type Quirks } from "./quirks.ts";
import { adaptBody, adaptMessages } from "./request/request-body.ts";
import { SerializedPrefixCache } from "./request/serialized-prefix-cache.ts";
import { Conversions } from "./request/to-model-messages.ts";

/** Address, key and options of a model. */
export interface Endpoint {
  readonly provider: string;
  /** The API of the model; "chat" if undefined. */
  readonly api?: Api;
  readonly baseURL: string;
  readonly apiKey?: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The provider's id of the model. */
  readonly modelId: string;
  /** Options of the model and its variant, sent with each request. */
  readonly options: Readonly<Record<string, unknown>>;
  /** False if the server rejects `stream_options.include_usage`. */
  readonly asksForUsage?: boolean;
  /** The call fails after this many milliseconds without data. */
  readonly stallMs: number;
}

/** The SDK's model at an endpoint. */
export interface Client {
  readonly model: LanguageModel;
  readonly connection: ModelConnection;
  readonly quirks: Quirks;
  readonly conversations: Conversations;
}

/** Caches of a conversation, so that a step processes only new messages. */
class Conversation {
  readonly conversions = new Conversions();
  readonly sent = new SerializedPrefixCache();
}

/** Conversations by their first message. */
class Conversations {
  readonly #known = new WeakMap<Message, Conversation>();

  of([first]: readonly Message[]): Conversation {
    const conversation = (first && this.#known.get(first)) ?? new Conversation();
    if (first !== undefined) this.#known.set(first, conversation);
    return conversation;
  }
}

/** The provider name for options passed through the SDK. */
export const sdkName = "fairlead";

/**
 * Caches one client per endpoint for the lifetime of the configuration. The SDK builds its parsers for each client, which
 * takes longer than the rest of the preparation of a request.
 */
export class Clients {
  readonly #send: Send;
  readonly #clients = new Map<string, Client>();

  constructor(send: Send) {
    this.#send = send;
  }

  for(endpoint: Endpoint): Client {
    const { provider, baseURL, apiKey, modelId, headers } = endpoint;
    const name = JSON.stringify([provider, baseURL, apiKey, modelId, headers]);
    const client = this.#clients.get(name) ?? this.#create(endpoint);
    this.#clients.set(name, client);
    return client;
  }

  #create({ provider, baseURL, apiKey, headers, modelId, asksForUsage = true }: Endpoint): Client {
    const quirks = quirksOf(provider, new URL(baseURL).hostname, modelId);
    const connection = new ModelConnection(retryLocal(this.#send), (messages) =>
      adaptMessages(messages, quirks),
    );
    const compatible = createOpenAICompatible({
      name: sdkName,
      baseURL,
      apiKey,
      headers,
      includeUsage: asksForUsage && quirks.asksForUsage,
      fetch: connection.fetch,
      transformRequestBody: (body) => connection.omitBody(adaptBody(body, quirks)),
    });
    const model = compatible.chatModel(modelId);
    return { model, connection, quirks, conversations: new Conversations() };
  }
}
