import { type AnyMessage, type ErrorResponse, RequestError } from "@agentclientprotocol/sdk/unstable";
import { messageOf } from "../base/errors.ts";
import type { AgentError } from "../message/message.ts";

/** One line for the message, the same in `details`, where several clients look for it. */
export function internalError(message: string): RequestError {
  return new RequestError(-32603, oneLine(message), { details: message });
}

export function invalidParams(message: string): RequestError {
  return new RequestError(-32602, oneLine(message), { details: message });
}

export function sessionNotFound(sessionId: string): RequestError {
  return new RequestError(-32002, `Session not found: ${sessionId}`, {
    sessionId,
    details: "Session not found",
  });
}

export function requestCancelled(requestId: unknown): RequestError {
  return RequestError.requestCancelled({ requestId });
}

/** Clients that retry a sign-in look for these first words. */
export function authRequired(message: string): RequestError {
  const text = `Authentication required: ${message}`;
  return new RequestError(-32000, oneLine(text), { details: text });
}

/** How a turn that failed is answered. */
export function turnError(error: AgentError): RequestError {
  if (error.code === "auth" || error.code === "no-model") return authRequired(error.message);
  return internalError(error.message);
}

/** The library words whatever a handler throws as "Internal error"; the person gets what was thrown. */
export function withHumanMessage(message: AnyMessage): AnyMessage {
  if (!("error" in message) || message.error.code !== -32603) return message;
  const { data } = message.error;
  if (typeof data !== "object" || data === null || !("details" in data) || typeof data.details !== "string")
    return message;
  return { ...message, error: { ...message.error, message: oneLine(data.details) || "Internal error" } };
}

/** What a request is answered with when this was thrown. */
export function errorOf(thrown: unknown): ErrorResponse {
  return (thrown instanceof RequestError ? thrown : internalError(messageOf(thrown))).toErrorResponse();
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, " ").trim();
}
