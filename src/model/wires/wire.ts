import type { wrapLanguageModel } from "ai";
import type { Api } from "../../config/api.ts";
import type { Model } from "../model.ts";
import type { Quirks } from "../quirks.ts";
import type { RefusedField } from "../request/refused-fields.ts";
import type { EventReader } from "../streams/answer-stream.ts";

/** The language model of the SDK's public contract. */
export type LanguageModel = ReturnType<typeof wrapLanguageModel>;
export type CallParams = Parameters<LanguageModel["doStream"]>[0];
export type Prompt = CallParams["prompt"];
export type StreamPart =
  Awaited<ReturnType<LanguageModel["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part : never;

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

/** One model call, as a wire needs to know it. */
export interface WireCall {
  readonly endpoint: Endpoint;
  readonly model: Model;
  readonly quirks: Quirks;
  /** Provider options of endpoint and request. */
  readonly options: NonNullable<CallParams["providerOptions"]>[string];
  /** Groups the requests of a conversation for the provider's prompt cache. */
  readonly cacheKey: string | undefined;
  readonly isRefused: (field: RefusedField) => boolean;
}

/** Settings that the SDK's providers have in common. */
interface Settings {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly headers: Record<string, string>;
  readonly fetch: typeof globalThis.fetch;
}

/** One API over which models are called. */
export interface Wire {
  readonly createModel: (settings: Settings, call: WireCall) => LanguageModel;
  /** Returns the parameters of a call with the provider options of the API. */
  readonly adapt: (params: CallParams, call: WireCall) => CallParams;
  readonly Reader: new () => EventReader<StreamPart>;
  /** Changes what the SDK writes and has no option for. */
  readonly rewriteBody?: (body: string) => string;
}

/**
 * Returns which messages get a cache mark: the system text, the end of the previous request (the message before the newest
 * answer) and the end of this one. A provider looks back only 20 blocks from a mark for an earlier one, so the end of the
 * previous request is marked again: many parallel calls add more.
 */
export function cacheMarkIndexes(
  roles: readonly unknown[],
  isMarkable: (index: number) => boolean = () => true,
): ReadonlySet<number> {
  const indexes = [...roles.keys()].filter(isMarkable);
  const newestAnswer = roles.lastIndexOf("assistant");
  const system = indexes.find((index) => roles[index] === "system");
  const previousEnd = indexes.findLast((index) => index < newestAnswer);
  return new Set([system, previousEnd, indexes.at(-1)].filter((index) => index !== undefined));
}
