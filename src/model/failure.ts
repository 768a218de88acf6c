import { codeOf, isAbort, messageOf, UserError } from "../base/errors.ts";
import { excerpt } from "../base/text/excerpt.ts";
import { parseJson } from "../base/text/json.ts";
import { isRecord } from "../base/text/record.ts";
import type { AgentError } from "../message/message.ts";
import { cancelled } from "./cancelled.ts";
import { type Destination, describeNotRunning } from "./catalog/local-server.ts";
import type { RefusedCall } from "./answer/refused-call.ts";
import { parseStatedWindow } from "./catalog/stated-window.ts";

/** Carries an {@link AgentError} as an exception through libraries; {@link toAgentError} extracts it. */
export class ProviderFailure extends Error {
  override readonly name = "ProviderFailure";
  readonly error: AgentError;
  /** Set if the provider rejected a tool call of the model. */
  readonly refusedCall: RefusedCall | undefined;

  constructor(error: AgentError, refusedCall?: RefusedCall) {
    super(error.message);
    this.error = error;
    this.refusedCall = refusedCall;
  }
}

/** An error response of a provider. */
export interface FailedAnswer {
  /** Undefined for an error event in a stream. */
  readonly status: number | undefined;
  /** A header's value, or null. */
  header(name: string): string | null;
  readonly body: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Maximum length of a provider's text in a message, in characters. */
const textLimit = 1_000;

/** Maximum number of nested causes. */
const causesLimit = 8;

/** Maximum depth of the fields of an error. */
const nestingLimit = 8;

/**
 * Error messages for a full context of OpenAI, Azure, DeepSeek, OpenRouter, vLLM ("maximum context length"), OpenAI
 * ("context window", its code), Anthropic, Bedrock, Gemini, xAI, Groq, Mistral,
 * llama.cpp, LM Studio, Ollama, Kimi, MiniMax.
 */
const contextLengthPatterns: readonly RegExp[] = [
  /context[_ ]length[_ ]exceeded/i,
  /maximum context length/i,
  /exceeds? (the |your )?(model'?s )?context (window|length|limit)/i,
  /context (window|length|limit) (is |was )?exceed/i,
  /exceeds? the (available )?context size/i,
  /exceed_context_size/i,
  /exceed context limit/i,
  /greater than the context length/i,
  /prompt is too long/i,
  /prompt too long/i,
  /input is too long/i,
  /input token count.*exceeds/i,
  /exceeds the maximum number of (input )?tokens/i,
  /maximum prompt length is/i,
  /reduce the length of (the )?(messages|prompt|input)/i,
  /longer than the (maximum model|model'?s context) length/i,
  /token(s| count)[^.]{0,40} exceeds the limit of \d+/i,
  /number of tokens in the prompt cannot exceed/i,
  /current length is \d+ while (the )?limit is/i,
  /must be <= \d+\. given/i,
  /tokens_limit_reached/i,
  /too large for model with \d+ maximum/i,
  /loaded with context length of only/i,
  /exceeded model token limit/i,
  /request_too_large/i,
];

/** Messages of status 429, or of errors in a stream, for which waiting does not help. */
const quotaPattern =
  /insufficient_quota|exceeded your current quota|billing|insufficient balance|out of credits/i;

/** A reason why a provider refuses requests although the key is right. `lead` is what the user reads first. */
interface Refusal {
  readonly pattern: RegExp;
  readonly code: AgentError["code"];
  readonly lead: string;
}

const otherRegion: Refusal = {
  pattern:
    /unsupported_country|country, region,? or territory|not (available|supported|offered) in your (country|region|location)|location is not supported|restricted region/i,
  code: "bad-request",
  lead: "The provider does not serve your region{status}",
};
const noCredit: Refusal = {
  pattern:
    /insufficient[_ ](quota|balance|credits?|funds)|credit balance|out of credits|exceeded your current quota|billing|payment required/i,
  code: "bad-request",
  lead: "The account has no credit left{status}",
};
const noModelAccess: Refusal = {
  pattern:
    /model_not_found|(does not have|no) access to (the |this )?model|not (allowed|authorized|permitted|entitled) to (use|access|call|sample from|invoke) (the |this )?model|model access/i,
  code: "bad-request",
  lead: "The key may not use this model{status}; choose another one, or have it enabled for the account",
};
const flagged: Refusal = {
  pattern: /moderation|was flagged|content[_ ]policy/i,
  code: "content-filter",
  lead: "The provider's filter stopped the request{status}",
};

/** Errors about the key of OpenAI and Anthropic. */
const keyPattern = /authentication_error|permission_error|invalid_api_key|invalid x-api-key/i;

/** Messages of local servers for which retrying does not help, whatever the status. */
const notRetryablePattern =
  /does not support tools|requires? --jinja|requires more system memory|(image|audio) input is not supported/i;

/** Node's error codes for untrusted certificates. Retrying does not help. */
const certificateCodes = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/;

/** Classifies an error response. The message includes the provider's text. */
export function parseErrorAnswer(answer: FailedAnswer): AgentError {
  const value = parseJson(answer.body) ?? answer.body;
  const texts = collectTexts(value, nestingLimit).join("\n");
  const text = addHint(describeBody(answer), texts);
  const kind = classify(answer.status ?? findStatus(value, nestingLimit), texts);
  const retryAfterMs = parseRetryAfter(answer, answer.now);
  const window = kind.code === "context-length" ? parseStatedWindow(answer.body) : undefined;
  return {
    ...kind,
    message: `${leadFor(kind.code, answer.status, findRefusal(answer.status, texts)?.lead)}${text}`,
    ...(answer.status !== undefined && { status: answer.status }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(window !== undefined && { window }),
  };
}

/** Converts an exception of a call to an error for the turn. */
export function toAgentError(thrown: unknown, to: Destination): AgentError {
  for (const error of listCauses(thrown)) {
    if (error instanceof ProviderFailure) return error.error;
    // Our own error, not the provider's.
    if (error instanceof UserError) return { code: "internal", message: error.message, retryable: false };
    if (isAbort(error)) return cancelled();
    const network = networkError(error, to);
    if (network !== undefined) return network;
  }
  return {
    code: "invalid-response",
    message: `The provider's answer could not be understood: ${excerpt(describeWithCause(thrown), textLimit)}`,
    retryable: false,
  };
}

/** Returns the call that the provider rejected, if the exception is such a failure. */
export function findRefusedCall(thrown: unknown): RefusedCall | undefined {
  const failure = listCauses(thrown).find((error) => error instanceof ProviderFailure);
  return failure?.refusedCall;
}

/** Lists an exception and its causes. */
function listCauses(thrown: unknown): unknown[] {
  const causes: unknown[] = [];
  let at = thrown;
  while (at !== undefined && causes.length < causesLimit) {
    causes.push(at);
    at = at instanceof Error ? at.cause : undefined;
  }
  return causes;
}

/** Returns the message with that of the cause, which is often the informative one. */
function describeWithCause(thrown: unknown): string {
  const cause = thrown instanceof Error ? thrown.cause : undefined;
  return cause instanceof Error ? `${messageOf(thrown)} (${messageOf(cause)})` : messageOf(thrown);
}

export const stallError = (stallMs: number): AgentError => ({
  code: "timeout",
  message: `The provider sent nothing for ${Math.round(stallMs / 100) / 10} s.`,
  retryable: true,
});

export const invalidResponse = (message: string, retryable: boolean): AgentError => ({
  code: "invalid-response",
  message,
  retryable,
});

/**
 * Parses `retry-after-ms` (milliseconds) or `retry-after` (seconds or an HTTP date) to milliseconds. Undefined if missing,
 * invalid or in the past.
 */
export function parseRetryAfter(answer: Pick<FailedAnswer, "header">, now: number): number | undefined {
  const ms = parseNumber(answer.header("retry-after-ms"));
  if (ms !== undefined) return ms > 0 ? Math.round(ms) : undefined;
  const after = answer.header("retry-after");
  const seconds = parseNumber(after);
  const waitMs = seconds === undefined ? parseDate(after) - now : seconds * 1_000;
  return waitMs > 0 ? Math.round(waitMs) : undefined;
}

/** Returns milliseconds since 1970, or NaN. Plain numbers are rejected: `Date.parse` reads them as years. */
const parseDate = (text: string | null): number =>
  text !== null && /[a-z]{3}|\dT\d/i.test(text) ? Date.parse(text) : Number.NaN;

/** Replaces each secret in the text. */
export function redact(text: string, secrets: readonly string[]): string {
  return secrets.reduce((clean, secret) => clean.replaceAll(secret, "[key]"), text);
}

function parseNumber(text: string | null): number | undefined {
  if (text === null || !/^\s*\d+(\.\d+)?\s*$/.test(text)) return undefined;
  return Number(text);
}

/** Fields that describe an error. Others may quote the conversation. */
const ownFields: readonly string[] = [
  "error",
  "errors",
  "message",
  "msg",
  "detail",
  "code",
  "type",
  "status",
  "status_code",
  "status_msg",
  "reason",
  "metadata",
  "raw",
  "base_resp",
];

/** Collects the texts of the fields that describe an error. */
function collectTexts(value: unknown, depth: number): string[] {
  if (depth === 0) return [];
  if (typeof value === "string") {
    const inner = value.startsWith("{") ? parseJson(value) : undefined;
    return inner === undefined ? [value] : collectTexts(inner, depth - 1);
  }
  if (typeof value === "number") return [String(value)];
  if (Array.isArray(value)) return value.flatMap((item) => collectTexts(item, depth - 1));
  if (!isRecord(value)) return [];
  return ownFields.flatMap((field) => collectTexts(value[field], depth - 1));
}

/** Finds an HTTP status in the fields of an error event. */
function findStatus(value: unknown, depth: number): number | undefined {
  if (depth === 0 || !isRecord(value)) return undefined;
  for (const field of [value.code, value.status, value.status_code]) {
    const status = Number(field);
    if (status >= 400 && status <= 599) return status;
  }
  return findStatus(value.error, depth - 1);
}

/** Gemini answers 400 to other regions. 402 always means credit. */
function findRefusal(status: number | undefined, texts: string): Refusal | undefined {
  if (status === 402) return noCredit;
  if (status === 400) return otherRegion.pattern.test(texts) ? otherRegion : undefined;
  if (status !== 403) return undefined;
  return [otherRegion, noCredit, noModelAccess, flagged].find(({ pattern }) => pattern.test(texts));
}

/** Classifies an error by status and texts. */
function classify(status: number | undefined, texts: string): Pick<AgentError, "code" | "retryable"> {
  const refusal = findRefusal(status, texts);
  if (refusal !== undefined) return { code: refusal.code, retryable: false };
  if (status === 401 || status === 403) return { code: "auth", retryable: false };
  if (notRetryablePattern.test(texts)) return { code: "bad-request", retryable: false };
  if (status === 429) return { code: "rate-limit", retryable: !quotaPattern.test(texts) };
  if (status === 413 || contextLengthPatterns.some((pattern) => pattern.test(texts))) {
    return { code: "context-length", retryable: false };
  }
  if (status === 529 || status === 503 || /overloaded/i.test(texts))
    return { code: "overloaded", retryable: true };
  if (status === undefined) return classifyStreamError(texts);
  if (status === 404) return { code: "not-found", retryable: false };
  if (status === 408 || status === 504 || status === 524) return { code: "timeout", retryable: true };
  if (status >= 500) return { code: "server", retryable: true };
  return { code: "bad-request", retryable: false };
}

/** Classifies an error without a status by its texts. */
function classifyStreamError(texts: string): Pick<AgentError, "code" | "retryable"> {
  if (keyPattern.test(texts)) return { code: "auth", retryable: false };
  if (quotaPattern.test(texts)) return { code: "rate-limit", retryable: false };
  if (/rate.?limit/i.test(texts)) return { code: "rate-limit", retryable: true };
  if (/content.?filter|safety/i.test(texts)) return { code: "content-filter", retryable: false };
  if (/invalid_request|invalid_argument/i.test(texts)) return { code: "bad-request", retryable: false };
  return { code: "server", retryable: true };
}

/** Adds a hint for the user to known errors. */
function addHint(text: string, texts: string): string {
  const found = hints.find((hint) => hint.pattern.test(texts));
  return found === undefined ? text : `${text.replace(/[.\s]*$/, ".")}${found.hint}`;
}

const hints: readonly { pattern: RegExp; hint: string }[] = [
  {
    // OpenAI: https://developers.openai.com/api/docs/models/gpt-6.1-sol
    pattern: /\/v1\/responses/,
    hint: ' Set "api": "responses" for this model, or for its provider, in fairlead.json.',
  },
  {
    pattern: /does not support tools/i,
    hint: ' Choose another model, set "tool_calls": "text" for this one so that it writes its calls as text, or "tool_call": false to talk with it without tools.',
  },
  {
    pattern: /requires? --jinja/i,
    hint: ' Start llama.cpp with --jinja, or set "tool_calls": "text" for this model.',
  },
  {
    pattern: /model '[^']*' not found|try pulling it/i,
    hint: ' Get it with "ollama pull", or see with "fairlead models --discover" what there is.',
  },
  {
    pattern: /available context size|loaded with context length of only|greater than the context length/i,
    hint: " Start the server, or load the model, with a larger context.",
  },
  {
    // vLLM: https://docs.vllm.ai/en/stable/features/tool_calling.html
    pattern: /enable-auto-tool-choice/,
    hint: ' Start vLLM with --enable-auto-tool-choice and the --tool-call-parser of the model, or set "tool_calls": "text" for this model.',
  },
];

const leads: Readonly<Partial<Record<AgentError["code"], string>>> = {
  auth: 'The provider refused the key{status}; check it or run "fairlead setup"',
  "rate-limit": "The provider limits requests{status}",
  overloaded: "The provider is overloaded{status}",
  "context-length": "The conversation is too long for the model{status}",
  "not-found": "The provider does not know this model or address{status}",
  timeout: "The provider ran out of time{status}",
  "content-filter": "The provider's filter stopped the answer{status}",
  "bad-request": "The provider refused the request{status}",
};

function leadFor(code: AgentError["code"], status: number | undefined, refusal?: string): string {
  const lead = refusal ?? leads[code] ?? "The provider failed{status}";
  return `${lead.replace("{status}", status === undefined ? "" : ` (${status})`)}: `;
}

/** Returns the message of a JSON body, the title of a web page, or the text. */
function describeBody(answer: FailedAnswer): string {
  const text = answer.body.trim();
  if (text === "") return "it gave no reason.";
  if (isWebPage(answer, text)) return `it answered with a web page${titleOf(text)}. Is the base URL right?`;
  return excerpt(findMessage(parseJson(text)) ?? text, textLimit);
}

export function isWebPage(answer: Pick<FailedAnswer, "header">, text: string): boolean {
  return /text\/html/i.test(answer.header("content-type") ?? "") || /^\s*<(!doctype|html)/i.test(text);
}

export function titleOf(html: string): string {
  const title = /<title[^>]*>([^<]{1,200})/i.exec(html)?.[1]?.trim();
  return title ? ` ("${title}")` : "";
}

/** Finds the message in error.message, error, message, detail, or a list of these. */
function findMessage(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(findMessage).find((message) => message !== undefined);
  if (typeof value !== "object" || value === null) return undefined;
  const record: Record<string, unknown> = { ...value };
  const raw = typeof record.raw === "string" ? (parseJson(record.raw) ?? record.raw) : record.raw;
  const upstream = findMessage(record.metadata) ?? findMessage(raw);
  const own =
    findMessage(record.error) ??
    findMessage(record.message) ??
    findMessage(record.detail) ??
    findMessage(record.msg) ??
    findMessage(record.status_msg) ??
    findMessage(record.base_resp);
  if (own === undefined || upstream === undefined || own.includes(upstream)) return own ?? upstream;
  return `${own}: ${upstream}`;
}

function networkError(thrown: unknown, to: Destination): AgentError | undefined {
  const code = codeOf(thrown);
  if (code === undefined) return undefined;
  const notRunning = describeNotRunning(thrown, to);
  if (notRunning !== undefined) return { code: "network", message: notRunning, retryable: false };
  const untrusted = certificateCodes.test(code);
  // Z_BUF_ERROR: a compressed answer broke off.
  if (!untrusted && !/^(E(?!RR_)[A-Z_]+|Z_BUF_ERROR|ERR_(?:SSL|PROXY)_.*)$/.test(code)) return undefined;
  const hint = hintFor(code, untrusted);
  const retryable = !untrusted && !code.startsWith("ERR_SSL_");
  return { code: "network", message: `Cannot reach ${hostOf(to.baseURL)} (${code})${hint}`, retryable };
}

/** Returns the host of a URL, or the text if it is not a URL. */
const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : url);

function hintFor(code: string, untrusted: boolean): string {
  if (untrusted)
    return ": its certificate is not trusted. Set NODE_EXTRA_CA_CERTS if the network has its own.";
  if (code === "ECONNREFUSED") return ": nothing listens there. Is the server running?";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return ": host not found. Check the network connection.";
  if (code.startsWith("ERR_PROXY_")) return ": the proxy does not let it through. Is HTTPS_PROXY right?";
  if (code === "ETIMEDOUT") return ": the connection timed out. Is the address right, and the network up?";
  if (code.startsWith("ERR_SSL_"))
    return ": it did not answer with valid TLS. Should the base URL begin with http://?";
  return ": the connection broke off.";
}
