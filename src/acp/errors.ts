import { type AnyMessage, type ErrorResponse, RequestError } from "@agentclientprotocol/sdk/unstable";
import { messageOf } from "../base/errors.ts";
import { excerpt } from "../base/excerpt.ts";
import { isRecord } from "../base/record.ts";
import type { AgentError } from "../message/message.ts";
import { wordsForFaults } from "./param-faults.ts";

/** Characters of an error's message, and of its details: what a client or a provider sent may be said again in them. */
const messageLength = 1_000;
const detailsLength = 10_000;

/** One line for the message, the same in `details`, where several clients look for it. */
export function internalError(message: string): RequestError {
  return worded(-32603, message);
}

export function invalidParams(message: string): RequestError {
  return worded(-32602, message);
}

export function sessionNotFound(id: string): RequestError {
  const sessionId = excerpt(id, messageLength);
  return new RequestError(-32002, `Session not found: ${oneLine(id)}`, {
    sessionId,
    details: "Session not found",
  });
}

export function requestCancelled(requestId: unknown): RequestError {
  return RequestError.requestCancelled({ requestId });
}

/** Clients that retry a sign-in look for these first words. */
export function authRequired(message: string): RequestError {
  return worded(-32000, `Authentication required: ${message}`);
}

/** How a turn that failed is answered. */
export function turnError(error: AgentError): RequestError {
  if (error.code === "auth" || error.code === "no-model") return authRequired(error.message);
  return internalError(error.message);
}

/**
 * The library words whatever a handler throws as "Internal error", what its schemas refuse as "Invalid params", and
 * repeats what it does not understand, however long; the person gets what was thrown, and which field was wrong.
 */
export function withHumanMessage(message: AnyMessage): AnyMessage {
  return "error" in message ? { ...message, error: inWords(message.error) } : message;
}

function inWords(error: ErrorResponse): ErrorResponse {
  const { code, message, data } = error;
  if (code === -32602) return refusedParams(data) ?? error;
  if (code === -32603 && isRecord(data) && typeof data.details === "string" && data.details.trim() !== "")
    return { ...error, message: oneLine(data.details) };
  const isRepeated = code === -32600 || message.length > messageLength;
  return isRepeated ? { code, message: oneLine(message) } : error;
}

/** What the library's schemas say of params, a tree of what is wrong by field; undefined for what is none. */
function refusedParams(tree: unknown): ErrorResponse | undefined {
  const words = wordsForFaults(tree);
  return words === undefined ? undefined : invalidParams(words).toErrorResponse();
}

/** What a request is answered with when this was thrown. */
export function errorOf(thrown: unknown): ErrorResponse {
  return (thrown instanceof RequestError ? thrown : internalError(messageOf(thrown))).toErrorResponse();
}

function worded(code: number, text: string): RequestError {
  return new RequestError(code, oneLine(text), { details: excerpt(text, detailsLength) });
}

function oneLine(text: string): string {
  return excerpt(text.replace(/\s*\n\s*/g, " ").trim(), messageLength);
}
