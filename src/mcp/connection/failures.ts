import { SseError } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { McpError, UrlElicitationRequiredError } from "@modelcontextprotocol/sdk/types.js";
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
    super(failure.kind === "failed" ? failure.reason : "it wants to know who asks");
    this.failure = failure;
  }
}

/** Kinds of failed requests, by how to handle them. */
export type RequestFailure =
  /** The connection is lost. The request may be retried on a new one. */
  | { readonly kind: "dropped"; readonly reason: string }
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
  if (error instanceof StreamableHTTPError && error.code === 401)
    return new ConnectError({ kind: "unauthorized" });
  if (error instanceof SseError && error.code === 401) return new ConnectError({ kind: "unauthorized" });
  if (error instanceof UserError || error instanceof MessageTooLongError)
    return failed(messageOf(error), false);
  if (error instanceof McpError && error.message.endsWith("Connection closed"))
    return failed("it ended before it answered", true);
  return failed(toReadable(error), isDrop(error));
}

/** Classifies the error of a request that was not cancelled, on a working connection. */
export function toRequestFailure(error: unknown): RequestFailure {
  if (error instanceof UrlElicitationRequiredError) {
    const visits = error.elicitations.map(({ elicitationId: id, url, message }) => ({ id, url, message }));
    return { kind: "visit", visits };
  }
  if (error instanceof StreamableHTTPError && error.code === 401) return { kind: "unauthorized" };
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

/** Returns whether a new connection may help. 404 means that the session expired. */
function isDrop(error: unknown): boolean {
  if (error instanceof StreamableHTTPError) return error.code === 404 || (error.code ?? 0) >= 500;
  return error instanceof TypeError || messageOf(error) === "Not connected";
}

/** Returns the message of the cause: `fetch failed` is not informative. */
export function toReadable(error: unknown): string {
  if (typeof error === "object" && error !== null && "issues" in error)
    return "it gave an answer that is none of the protocol's";
  const text = excerpt(messageOf(error).replace(/^MCP error -?\d+: /, ""), errorLength);
  const cause = getCause(error);
  return error instanceof TypeError && cause instanceof Error ? `${text}: ${describeCause(cause)}` : text;
}

/** Unwraps an AggregateError: a host with several addresses has one error for each. */
function describeCause(cause: Error): string {
  if (cause instanceof AggregateError) return messageOf(cause.errors[0]);
  return messageOf(cause);
}
