import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModel } from "ai";
import type { Message } from "../message/message.ts";
import { Connection } from "./connection.ts";
import type { Send } from "./http.ts";
import { retryLocal } from "./catalog/local-server.ts";
import { quirksOf, type Quirks } from "./quirks.ts";
import { adaptBody, adaptMessages } from "./request/request-body.ts";
import { SerializedPrefixCache } from "./request/serialized-prefix-cache.ts";
import { Conversions } from "./request/to-model-messages.ts";

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
  readonly conversations: Conversations;
}

/** What is kept of a conversation, so that a step costs what is new in it. */
class Conversation {
  readonly conversions = new Conversions();
  readonly sent = new SerializedPrefixCache();
}

/** Each is known by its first message. */
class Conversations {
  readonly #known = new WeakMap<Message, Conversation>();

  of([first]: readonly Message[]): Conversation {
    const conversation = (first && this.#known.get(first)) ?? new Conversation();
    if (first !== undefined) this.#known.set(first, conversation);
    return conversation;
  }
}

/** The name under which options travel through the SDK. */
export const sdkName = "fairlead";

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

  for(endpoint: Endpoint): Client {
    const { provider, baseURL, apiKey, modelId, headers } = endpoint;
    const name = JSON.stringify([provider, baseURL, apiKey, modelId, headers]);
    const client = this.#clients.get(name) ?? this.#create(endpoint);
    this.#clients.set(name, client);
    return client;
  }

  #create({ provider, baseURL, apiKey, headers, modelId, asksForUsage = true }: Endpoint): Client {
    const quirks = quirksOf(provider, new URL(baseURL).hostname, modelId);
    const connection = new Connection(retryLocal(this.#send), (messages) => adaptMessages(messages, quirks));
    const compatible = createOpenAICompatible({
      name: sdkName,
      baseURL,
      apiKey,
      headers,
      includeUsage: asksForUsage && quirks.asksForUsage,
      fetch: connection.fetch,
      transformRequestBody: (body) => connection.withhold(adaptBody(body, quirks)),
    });
    const model = compatible.chatModel(modelId);
    return { model, connection, quirks, conversations: new Conversations() };
  }
}
