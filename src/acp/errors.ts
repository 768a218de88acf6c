import { RequestError } from "@agentclientprotocol/sdk/unstable";
import { messageOf } from "../base/errors.ts";
import { excerpt } from "../base/text/excerpt.ts";
import type { AgentError } from "../message/message.ts";
import { type ClientFeatures, noFeatures } from "./client-capabilities.ts";

/** Characters of an error's message and details, which may repeat text of a client or a provider. */
const messageLength = 1_000;
const detailsLength = 10_000;

/** Machine-readable error data. */
interface ErrorFacts {
  readonly kind?: string;
  /** Whether a retry may succeed. */
  readonly retryable?: boolean;
  /** Delay that the provider requested. */
  readonly retryAfterMs?: number;
  /** Reason, as the protocol names it. */
  readonly reason?: string;
  readonly messageId?: string;
}

/** Creates an error with a one-line message, repeated in `details`, where several clients read it. */
export function internalError(message: string, facts: ErrorFacts = {}): RequestError {
  return createError(-32603, message, facts);
}

export function invalidParams(message: string, facts: ErrorFacts = {}): RequestError {
  return createError(-32602, message, facts);
}

export function messageNotFound(id: string): RequestError {
  return createError(-32002, `The session has no message "${excerpt(id, messageLength)}".`, {
    reason: "unknown_message_id",
    messageId: excerpt(id, messageLength),
  });
}

/** The message of an injection cannot be changed as requested. */
export function injectionRejected(
  reason: "no_running_turn" | "already_delivered",
  id?: string,
): RequestError {
  const messageId = id === undefined ? {} : { messageId: excerpt(id, messageLength) };
  return createError(-32010, injectionProblems[reason], { reason, ...messageId });
}

const injectionProblems = {
  no_running_turn: "No turn is running that can take the message. Send it as a prompt.",
  already_delivered: "It is too late: the model already received the message.",
};

export function sessionNotFound(id: string): RequestError {
  const sessionId = excerpt(id, messageLength);
  return new RequestError(-32002, `Session not found: ${toOneLine(id)}`, {
    sessionId,
    details: "Session not found",
  });
}

/** Another process has the session open. */
export class SessionInUse extends RequestError {
  readonly sessionId: string;
  readonly pid: number | undefined;

  constructor(sessionId: string, pid: number | undefined) {
    const holder = pid === undefined ? "another process" : `another process (pid ${pid})`;
    const message = `The session ${sessionId} is open in ${holder}. Close it there first.`;
    super(-32603, message, { details: message });
    this.sessionId = sessionId;
    this.pid = pid;
  }
}

export function invalidRequest(message: string): RequestError {
  return new RequestError(-32600, `Invalid request: ${toOneLine(message)}`);
}

export function methodNotFound(method: string): RequestError {
  return RequestError.methodNotFound(excerpt(method, messageLength));
}

export function requestCancelled(requestId: unknown): RequestError {
  return RequestError.requestCancelled({ requestId });
}

/** The message begins with fixed words, which clients use to detect that they should sign in. */
export function authRequired(message: string, facts: ErrorFacts = {}): RequestError {
  return createError(-32000, `Authentication required: ${message}`, facts);
}

/** Machine-readable names of failures. */
const errorKinds: Readonly<Record<AgentError["code"], string>> = {
  auth: "auth",
  "no-model": "config",
  "rate-limit": "rate_limit",
  overloaded: "overloaded",
  "context-length": "context",
  "bad-request": "bad_request",
  "not-found": "not_found",
  network: "network",
  timeout: "timeout",
  server: "server",
  "invalid-response": "invalid_response",
  "content-filter": "content_filter",
  "output-length": "output_length",
  storage: "storage",
  cancelled: "cancelled",
  internal: "internal",
};

/** Creates the error response of a failed turn. Clients with `errorDetailsOnly` get no machine-readable data. */
export function turnError(
  error: AgentError,
  { errorDetailsOnly }: Pick<ClientFeatures, "errorDetailsOnly"> = noFeatures,
): RequestError {
  const { code, message, retryable, retryAfterMs } = error;
  const facts = { kind: errorKinds[code], retryable, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  if (code === "auth" || code === "no-model") return authRequired(message, facts);
  return internalError(message, errorDetailsOnly ? {} : facts);
}

/** Converts the thrown value of a request to an error for its response. */
export function toRequestError(thrown: unknown, signal: AbortSignal): RequestError {
  if (thrown instanceof RequestError) return thrown;
  const isCancelled = signal.aborted && thrown instanceof Error && thrown.name === "AbortError";
  if (isCancelled && signal.reason instanceof RequestError) return signal.reason;
  return internalError(messageOf(thrown));
}

function createError(code: number, text: string, facts: ErrorFacts = {}): RequestError {
  return new RequestError(code, toOneLine(text), { details: excerpt(text, detailsLength), ...facts });
}

function toOneLine(text: string): string {
  return excerpt(text.replace(/\s*\n\s*/g, " ").trim(), messageLength);
}
