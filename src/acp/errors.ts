import { type ErrorResponse, RequestError } from "@agentclientprotocol/sdk/unstable";
import { messageOf } from "../base/errors.ts";
import { excerpt } from "../base/excerpt.ts";
import type { AgentError } from "../message/message.ts";

/** Characters of an error's message, and of its details: what a client or a provider sent may be said again in them. */
export const messageLength = 1_000;
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

/** What a request is answered with when this was thrown. */
export function errorOf(thrown: unknown): ErrorResponse {
  return (thrown instanceof RequestError ? thrown : internalError(messageOf(thrown))).toErrorResponse();
}

function worded(code: number, text: string): RequestError {
  return new RequestError(code, oneLine(text), { details: excerpt(text, detailsLength) });
}

export function oneLine(text: string): string {
  return excerpt(text.replace(/\s*\n\s*/g, " ").trim(), messageLength);
}
