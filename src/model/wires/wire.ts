import type { AnthropicProviderSettings } from "@ai-sdk/anthropic";
import type { wrapLanguageModel } from "ai";
import type { MetadataOwner } from "../../message/part.ts";
import type { Endpoint } from "../endpoint.ts";
import type { Model } from "../model.ts";
import type { Quirks } from "../quirks.ts";
import type { RefusedField } from "../request/refused-fields.ts";
import type { EventReader } from "../streams/connection.ts";

/** The language model of the SDK's public contract. */
export type LanguageModel = ReturnType<typeof wrapLanguageModel>;
export type CallParams = Parameters<LanguageModel["doStream"]>[0];
export type Prompt = CallParams["prompt"];
export type StreamPart =
  Awaited<ReturnType<LanguageModel["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part : never;

/** The facts about a model call that a wire needs. */
export interface WireCall {
  readonly endpoint: Endpoint;
  readonly model: Model;
  /** The provider and model whose own data is sent back. */
  readonly owner: MetadataOwner;
  readonly quirks: Quirks;
  /** Provider options. */
  readonly options: NonNullable<CallParams["providerOptions"]>[string];
  /** Groups the requests of a conversation for the provider's prompt cache. */
  readonly cacheKey: string | undefined;
  readonly isRefused: (field: RefusedField) => boolean;
}

/** Settings that the SDK's providers have in common. */
type Settings = Required<Pick<AnthropicProviderSettings, "baseURL" | "apiKey" | "headers" | "fetch">>;

/** One API over which models are called. */
export interface Wire {
  readonly createModel: (settings: Settings, call: WireCall) => LanguageModel;
  /** Returns the parameters of a call with the provider options of the API. */
  readonly adapt: (params: CallParams, call: WireCall) => CallParams;
  readonly Reader: new () => EventReader<StreamPart>;
  /** Changes parts of the SDK's request for which it has no option. */
  readonly rewriteBody?: (body: string) => string;
}
