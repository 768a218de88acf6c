import { wrapLanguageModel } from "ai";
import { importModule } from "../../base/import-module.ts";
import type { Api } from "../../config/api.ts";
import { retryLocal } from "../catalog/local-server.ts";
import type { Endpoint } from "../endpoint.ts";
import type { HttpAnswer, Send } from "../http.ts";
import { RefusedFields } from "../request/refused-fields.ts";
import type { Connection } from "../streams/connection.ts";
import { post } from "../streams/post.ts";
import type { CallParams, StreamPart, Wire, WireCall } from "./wire.ts";

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
    const { api = "chat", baseURL, apiKey = "", headers: configured } = call.endpoint;
    const wire = await importModule(modules[api]);
    let answer: HttpAnswer | undefined;
    const fetch: typeof globalThis.fetch = async (url, { headers = {}, body } = {}) => {
      if (typeof url !== "string" || typeof body !== "string")
        throw new Error("unexpected request format of the SDK");
      answer = await post(this.#send, new URL(url), {
        headers: toSentHeaders(headers, configured),
        body: wire.rewriteBody?.(body) ?? body,
        signal: connection.signal,
      });
      return emptyResponse();
    };
    const model = wrapLanguageModel({
      model: wire.createModel({ baseURL, apiKey, headers: { ...configured }, fetch }, call),
      middleware: {
        transformParams: async () => wire.adapt(params, call),
        wrapStream: async ({ doStream }) => {
          const result = await doStream();
          if (answer === undefined) throw new Error("the SDK sent no request");
          return { ...result, stream: connection.read(answer, new wire.Reader()) };
        },
      },
    });
    return (await model.doStream(params)).stream;
  }
}

/** A feature of Messages that the SDK asks for with any tools; only strict ones need it. */
const unneededBeta = "structured-outputs-2025-11-13";

/** Returns the SDK's headers without empty keys, and without a beta feature that nobody configured. */
function toSentHeaders(headers: object, configured: Endpoint["headers"]): Record<string, string> {
  const isConfigured = Object.values(configured).some((value) => value.includes(unneededBeta));
  const sent = Object.entries(headers).map(([name, value]): [string, string] => {
    if (name !== "anthropic-beta" || isConfigured) return [name, String(value)];
    const features = String(value).split(",");
    return [name, features.filter((feature) => feature.trim() !== unneededBeta).join(",")];
  });
  return Object.fromEntries(sent.filter(([, value]) => value !== "" && value !== "Bearer "));
}

/** Creates an object with the members of `Response` that the SDK reads. Node's class would load its whole fetch. */
function emptyResponse(): Response {
  const body = new ReadableStream({ start: (controller) => controller.close() });
  return Object.assign(Object.create(null), { ok: true, status: 200, headers: new Map(), body });
}
