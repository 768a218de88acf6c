import {
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  SseError,
  UrlElicitationRequiredError,
} from "@modelcontextprotocol/client";
import { messageOf, UserError } from "../../base/errors.ts";
import { excerpt } from "../../base/text/excerpt.ts";
import { MessageTooLongError } from "./bounded-fetch.ts";

/** Maximum length of a server's error text, in characters. */
const errorLength = 1_000;

/** Reason of a failed connection. */
export type ConnectFailure =
  | { readonly kind: "unauthorized" }
  /** `isPassing`: the failure may be temporary. */
  | { readonly kind: "failed"; readonly reason: string; readonly isPassing: boolean };

export class ConnectError extends Error {
  override readonly name = "ConnectError";
  readonly failure: ConnectFailure;
  constructor(failure: ConnectFailure) {
    super(failure.kind === "failed" ? failure.reason : "it requires authorization");
    this.failure = failure;
  }
}

/** Kinds of failed requests, by how to handle them. */
export type RequestFailure =
  /** The connection is lost. The request may be retried on a new one, unless it is a task that has started. */
  | { readonly kind: "dropped"; readonly reason: string; readonly isTask?: true }
  | { readonly kind: "unauthorized" }
  | { readonly kind: "timed-out" }
  | { readonly kind: "cancelled" }
  /** The user has to visit these addresses first. */
  | { readonly kind: "visit"; readonly visits: readonly { id: string; url: string; message: string }[] }
  | { readonly kind: "failed"; readonly reason: string };

export class TimeoutError extends Error {
  override readonly name = "TimedOut";
}

/** Converts an error while connecting; `serverText` is appended to the reason. */
export function toConnectError(error: unknown, timeoutMs: number, serverText: string): ConnectError {
  const failed = (reason: string, isPassing: boolean) =>
    Object.assign(new ConnectError({ kind: "failed", reason: `${reason}${serverText}`, isPassing }), {
      cause: error,
    });
  if (error instanceof TimeoutError) return failed(`it did not answer within ${timeoutMs / 1_000} s`, false);
  if (getHttpStatus(error) === 401) return new ConnectError({ kind: "unauthorized" });
  if (error instanceof UserError || error instanceof MessageTooLongError)
    return failed(messageOf(error), false);
  if (isClosed(error)) return failed("it ended before it answered", true);
  return failed(toReadable(error), isDrop(error));
}

/** Classifies the error of a request that was not cancelled, on a working connection. */
export function toRequestFailure(error: unknown): RequestFailure {
  if (error instanceof UrlElicitationRequiredError) {
    const visits = error.elicitations.map(({ elicitationId: id, url, message }) => ({ id, url, message }));
    return { kind: "visit", visits };
  }
  if (getHttpStatus(error) === 401) return { kind: "unauthorized" };
  return { kind: isDrop(error) ? "dropped" : "failed", reason: toReadable(error) };
}

/** Describes a failed request for the model and the user. */
export function describeFailure(failure: RequestFailure, timeoutMs: number): string {
  switch (failure.kind) {
    case "dropped":
    case "failed":
      return failure.reason;
    case "unauthorized":
      return "it requires authorization";
    case "timed-out":
      return `no answer within ${timeoutMs / 1_000} s`;
    case "cancelled":
      return "it was cancelled";
    case "visit":
      return `the user must visit ${failure.visits.map(({ url }) => url).join(", ")} first`;
  }
}

export function getCause(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}

/** Returns whether the server does not know the first request, which suggests that it speaks the other generation. */
export function isOtherEra(error: unknown): boolean {
  if (error instanceof ProtocolError) return otherEraCodes.includes(error.code);
  return error instanceof SdkHttpError && error.status === 400;
}

/** Invalid request, unknown method, missing parameters, unsupported version. */
const otherEraCodes: readonly number[] = [-32_600, -32_601, -32_602, -32_022];

/** Returns whether the server did not answer the question for its generation in time. */
export function isProbeTimeout(error: unknown): boolean {
  return isSdkError(error, SdkErrorCode.RequestTimeout);
}

function isClosed(error: unknown): boolean {
  if (isSdkError(error, SdkErrorCode.ConnectionClosed)) return true;
  const cause = isSdkError(error, SdkErrorCode.EraNegotiationFailed) ? getCause(error) : undefined;
  return cause !== undefined && messageOf(cause).startsWith("Connection closed");
}

function isSdkError(error: unknown, code: SdkErrorCode): error is SdkError {
  return error instanceof SdkError && error.code === code;
}

/** Returns the status of a refused HTTP request. */
export function getHttpStatus(error: unknown): number | undefined {
  if (error instanceof SseError) return error.code;
  return error instanceof SdkHttpError ? error.status : undefined;
}

/** Returns whether a new connection may help. 404 means that the session expired. */
function isDrop(error: unknown): boolean {
  const status = getHttpStatus(error);
  if (status !== undefined) return status === 404 || status >= 500;
  return isNetworkError(error) || messageOf(error) === "Not connected";
}

/** Returns whether `fetch` failed, or the question for the server's generation failed because of it. */
function isNetworkError(error: unknown): boolean {
  if (error instanceof TypeError) return true;
  return isSdkError(error, SdkErrorCode.EraNegotiationFailed) && getCause(error) instanceof TypeError;
}

/** Returns the message of the cause: `fetch failed` is not informative. */
export function toReadable(error: unknown): string {
  if (isSdkError(error, SdkErrorCode.EraNegotiationFailed) && getCause(error) !== undefined)
    return toReadable(getCause(error));
  if (isSdkError(error, SdkErrorCode.InvalidResult)) return "its answer does not follow the protocol";
  if (error instanceof SdkHttpError) return describeHttpError(error);
  const text = excerpt(messageOf(error), errorLength);
  const cause = getCause(error);
  return error instanceof TypeError && cause instanceof Error ? `${text}: ${describeCause(cause)}` : text;
}

function describeHttpError({ status, data }: SdkHttpError): string {
  const { text } = data;
  const details = typeof text === "string" ? text.trim() : "";
  const answer = `it answered with HTTP ${status}`;
  return details === "" ? answer : `${answer}: ${excerpt(details, errorLength)}`;
}

/** Unwraps an AggregateError: a host with several addresses has one error for each. */
function describeCause(cause: Error): string {
  if (cause instanceof AggregateError) return messageOf(cause.errors[0]);
  return messageOf(cause);
}
