import type { Api } from "../config/api.ts";
import type { AgentError } from "../message/message.ts";
import { redact, toAgentError } from "./failure.ts";

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

/** Returns the host name; "" if the base URL is invalid. */
export const hostOf = ({ baseURL }: Endpoint): string => URL.parse(baseURL)?.hostname ?? "";

/** Returns an error if the base URL is invalid. */
export function checkBaseUrl({
  provider,
  baseURL,
}: Pick<Endpoint, "provider" | "baseURL">): AgentError | undefined {
  if (/^https?:\/\//.test(baseURL) && URL.canParse(baseURL)) return undefined;
  const message = `The base URL of ${provider} must begin with http:// or https://, but is "${baseURL}".`;
  return { code: "bad-request", message, retryable: false };
}

/** Shorter secrets are not redacted in messages: they would match anywhere. */
const minSecretLength = 6;

/** Returns the error of a call without the secrets of its endpoint. */
export function toRedactedError(thrown: unknown, endpoint: Endpoint): AgentError {
  const { apiKey = "", headers } = endpoint;
  const values = Object.values(headers).flatMap((value) => [value, value.replace(/^\w+ /, "")]);
  const secrets = [apiKey, ...values].filter((secret) => secret.length >= minSecretLength);
  const error = toAgentError(thrown, endpoint);
  return { ...error, message: redact(error.message, secrets) };
}
