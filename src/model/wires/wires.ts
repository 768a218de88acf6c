import { wrapLanguageModel } from "ai";
import { importModule } from "../../base/import-module.ts";
import type { Api } from "../../config/api.ts";
import type { AgentError } from "../../message/message.ts";
import { retryLocal } from "../catalog/local-server.ts";
import type { HttpAnswer, Send } from "../http.ts";
import { quirksOf, type Quirks } from "../quirks.ts";
import { streamAnswer } from "../streams/answer-stream.ts";
import type { Connection } from "../streams/connection.ts";
import { post } from "../streams/post.ts";
import type { AnswerReader } from "./answer-reader.ts";
import type { Adapt, CallParams, CreateModel, Endpoint, RefusedField, StreamPart, WireCall } from "./wire.ts";

/** One API over which models are called. */
interface Wire {
  readonly createModel: CreateModel;
  readonly adapt: Adapt;
  readonly Reader: new () => AnswerReader;
  /** Changes what the SDK writes and has no option for. */
  readonly rewriteBody?: (body: string) => string;
}

/** Each API loads its part of the SDK when it is first used. */
const modules: Readonly<Record<Api, () => Promise<Wire>>> = {
  chat: () => import("./chat.ts"),
  responses: () => import("./responses.ts"),
  messages: () => import("./messages.ts"),
};

/** Opens calls over the three APIs. */
export class Wires {
  readonly #send: Send;
  readonly refused = new RefusedFields();

  constructor(send: Send) {
    this.#send = retryLocal(send);
  }

  /**
   * Sends the request as the SDK writes it. The SDK's readers require the exact form of their vendor, so the answer is read
   * by the wire's own, in the parts of the SDK's contract.
   */
  async open(
    call: WireCall,
    params: CallParams,
    connection: Connection,
  ): Promise<ReadableStream<StreamPart>> {
    const { endpoint } = call;
    const wire = await importModule(modules[endpoint.api ?? "chat"]);
    let answer: HttpAnswer | undefined;
    const fetch: typeof globalThis.fetch = async (url, { headers, body } = {}) => {
      if (typeof url !== "string" || typeof body !== "string")
        throw new Error("unexpected request format of the SDK");
      answer = await post(this.#send, new URL(url), {
        headers: sentHeaders(headers, endpoint.headers),
        body: wire.rewriteBody?.(body) ?? body,
        signal: connection.signal,
      });
      return emptyResponse();
    };
    const model = wrapLanguageModel({
      model: wire.createModel({ ...call, fetch }),
      middleware: {
        transformParams: async () => wire.adapt(params, call),
        wrapStream: async ({ doStream }) => {
          const result = await doStream();
          if (answer === undefined) throw new Error("the SDK sent no request");
          return { ...result, stream: streamAnswer(answer, new wire.Reader(), connection) };
        },
      },
    });
    return (await model.doStream(params)).stream;
  }
}

/** A feature of Messages that the SDK asks for with any tools; only strict ones need it. */
const unneededBeta = "structured-outputs-2025-11-13";

/** Returns the SDK's headers without empty keys, and without a beta feature that nobody configured. */
function sentHeaders(
  headers: RequestInit["headers"] = {},
  configured: Endpoint["headers"],
): Record<string, string> {
  const isConfigured = Object.values(configured).some((value) => value.includes(unneededBeta));
  const sent = Object.entries(headers).map(([name, value]): [string, string] => {
    const items = String(value).split(",");
    const isKept = name !== "anthropic-beta" || isConfigured;
    return [name, isKept ? String(value) : items.filter((item) => item.trim() !== unneededBeta).join(",")];
  });
  return Object.fromEntries(sent.filter(([, value]) => value !== "" && value !== "Bearer "));
}

/** Creates an object with the members of `Response` that the SDK reads. Node's class would load its whole fetch. */
function emptyResponse(): Response {
  const body = new ReadableStream({ start: (controller) => controller.close() });
  return Object.assign(Object.create(null), { ok: true, status: 200, headers: new Map(), body });
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
