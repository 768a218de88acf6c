import { type AnyMessage, type ErrorResponse, RequestError } from "@agentclientprotocol/sdk/unstable";
import { messageOf } from "../base/errors.ts";
import { excerpt } from "../base/excerpt.ts";
import { isRecord } from "../base/record.ts";
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

/**
 * The library words whatever a handler throws as "Internal error", and what its schemas refuse as "Invalid params"; the
 * person gets what was thrown, and which field was wrong.
 */
export function withHumanMessage(message: AnyMessage): AnyMessage {
  if (!("error" in message)) return message;
  const { code, data } = message.error;
  if (code === -32602) return { ...message, error: refusedParams(data) ?? message.error };
  if (code !== -32603) return message;
  if (typeof data !== "object" || data === null || !("details" in data) || typeof data.details !== "string")
    return message;
  return { ...message, error: { ...message.error, message: oneLine(data.details) || "Internal error" } };
}

/** What the library's schemas say of params, a tree of what is wrong by field; undefined for what is none. */
function refusedParams(tree: unknown): ErrorResponse | undefined {
  if (!isRecord(tree) || !Array.isArray(tree._errors)) return undefined;
  const faults = faultsIn(tree, []);
  if (faults.length === 0) return undefined;
  const more = faults.length > faultsLimit ? `; and ${faults.length - faultsLimit} more` : "";
  const named = faults.slice(0, faultsLimit).map((fault) => excerpt(fault, faultLength));
  return invalidParams(`Invalid params: ${named.join("; ")}${more}`).toErrorResponse();
}

/** Fields that a message names, and characters for each. */
const faultsLimit = 3;
const faultLength = 200;

function faultsIn(tree: Readonly<Record<string, unknown>>, path: readonly string[]): string[] {
  const { _errors: own, ...fields } = tree;
  const words = Array.isArray(own) ? [...new Set(own)].join(", ") : "";
  const faults = words === "" ? [] : [[path.join("."), words].filter((text) => text !== "").join(": ")];
  for (const [name, field] of Object.entries(fields))
    if (isRecord(field)) faults.push(...faultsIn(field, [...path, name]));
  return faults;
}

/** What a request is answered with when this was thrown. */
export function errorOf(thrown: unknown): ErrorResponse {
  return (thrown instanceof RequestError ? thrown : internalError(messageOf(thrown))).toErrorResponse();
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, " ").trim();
}
