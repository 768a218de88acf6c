import { isRecord } from "../../base/text/record.ts";
import { type Json as Chunk, streamFailure } from "./answer-reader.ts";

/** Maximum length of a thought signature, in characters. Longer ones are dropped. */
const signatureLimit = 256 * 1024;

/** The content of a delta. Fields without content are empty strings. */
export interface DeltaContent {
  readonly reasoning: string;
  /** The field that has the reasoning, if it is text. */
  readonly reasoningField: "reasoning" | "reasoning_content" | undefined;
  readonly text: string;
  readonly refusal: string;
  readonly calls: readonly CallFragment[];
}

/** A tool call, or a fragment of one. Strings are empty where the server sent none. */
export interface CallFragment {
  readonly index: number | undefined;
  readonly id: string;
  name: string;
  arguments: string;
  signature: string | undefined;
}

export function parseContent(delta: Chunk): DeltaContent {
  const { content, reasoning_content, reasoning, refusal } = delta;
  const parts = Array.isArray(content) ? content.filter(isRecord) : [];
  const field = textOf(reasoning_content) ? "reasoning_content" : textOf(reasoning) ? "reasoning" : undefined;
  return {
    reasoning:
      (field && textOf(delta[field])) ||
      detailsText(delta.reasoning_details) ||
      parts.map(thoughtOfPart).join(""),
    reasoningField: field,
    text: typeof content === "string" ? content : parts.map(textOfPart).join(""),
    refusal: typeof refusal === "string" ? refusal : "",
    calls: listCalls(delta).map(toCallFragment),
  };
}

/** Returns a string, or the `text` of an object, as gateways to Bedrock send it. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return isRecord(value) && typeof value.text === "string" ? value.text : "";
}

/** Some servers send reasoning only as `reasoning_details` (Snowflake, MiniMax). */
function detailsText(details: unknown): string {
  if (!Array.isArray(details)) return "";
  return details
    .map((detail) => (isRecord(detail) ? textOf(detail.text) || textOf(detail.summary) : ""))
    .join("");
}

const textOfPart = (part: Chunk): string => (isThought(part) ? "" : textOf(part));

/** Mistral sends `thinking` with a list of texts, Databricks `reasoning` with a list `summary`. */
function thoughtOfPart(part: Chunk): string {
  if (!isThought(part)) return "";
  const inner = part.thinking ?? part.summary ?? part.text;
  return Array.isArray(inner) ? inner.map(textOf).join("") : textOf(inner);
}

const isThought = ({ type }: Chunk): boolean => type === "thinking" || type === "reasoning";

/** Older servers send a single call in `function_call`. */
function listCalls({ tool_calls, function_call }: Chunk): Chunk[] {
  if (Array.isArray(tool_calls)) return tool_calls.filter(isRecord);
  return isRecord(function_call) ? [{ index: 0, function: function_call }] : [];
}

function toCallFragment(call: Chunk): CallFragment {
  const called = isRecord(call.function) ? call.function : {};
  const { id } = call;
  return {
    index: typeof call.index === "number" ? call.index : undefined,
    id: typeof id === "string" || typeof id === "number" ? String(id) : "",
    name: typeof called.name === "string" ? called.name.trim() : "",
    arguments: argumentsText(called.arguments),
    signature: signatureOf(call),
  };
}

/** Returns the thought signature that the Gemini API and Vertex put into `extra_content`. */
function signatureOf({ extra_content: extra }: Chunk): string | undefined {
  const vendors = isRecord(extra) ? [extra.google, extra.vertex] : [];
  const signature = vendors.find(isRecord)?.thought_signature;
  return typeof signature === "string" && signature !== "" && signature.length <= signatureLimit
    ? signature
    : undefined;
}

/** Some servers send the arguments as an object instead of a string. */
const argumentsText = (value: unknown): string =>
  typeof value === "string" ? value : isSet(value) ? JSON.stringify(value) : "";

/**
 * Returns the usage of a chunk: at the top level, in a choice (Moonshot), in a vendor field (`x_groq`), or computed from
 * the timings of llama.cpp.
 */
export function findUsage(value: Chunk): Chunk | undefined {
  if (isRecord(value.usage)) return value.usage;
  const usage = firstChoice(value)?.usage;
  if (isRecord(usage)) return usage;
  for (const key in value) {
    const field = value[key];
    if (isRecord(field) && isRecord(field.usage)) return field.usage;
  }
  return isRecord(value.timings) ? usageFromTimings(value.timings) : undefined;
}

/** https://github.com/ggml-org/llama.cpp/pull/15827 */
function usageFromTimings({
  cache_n: cached = 0,
  prompt_n: fresh,
  predicted_n: predicted,
}: Chunk): Chunk | undefined {
  if (typeof cached !== "number" || typeof fresh !== "number") return undefined;
  return {
    prompt_tokens: cached + fresh,
    completion_tokens: predicted,
    prompt_tokens_details: { cached_tokens: cached },
  };
}

/** Throws a `ProviderFailure` if the chunk reports an error. */
export function failOnError(value: Chunk): void {
  const reason = firstChoice(value)?.finish_reason;
  const failed = isError(value.error) || value.type === "error" || reason === "error" || isErrorBody(value);
  if (!failed) return;
  throw streamFailure(isError(value.error) ? { error: value.error } : value);
}

/** Some servers send an empty error with each chunk. */
const isError = (error: unknown): boolean =>
  isRecord(error) ? Object.values(error).some((field) => Boolean(field)) : Boolean(error);

/** Recognizes the error formats of vLLM, FastAPI servers and MiniMax. */
function isErrorBody({ choices, object, message, detail, base_resp: base }: Chunk): boolean {
  if (isSet(choices)) return false;
  const isRefusal = isRecord(base) && Boolean(base.status_code);
  return object === "error" || isSet(message) || isSet(detail) || isRefusal;
}

export function firstChoice(value: Chunk): Chunk | undefined {
  const first: unknown = Array.isArray(value.choices) ? value.choices[0] : undefined;
  return isRecord(first) ? first : undefined;
}

/** Returns `delta`, or `message` of servers that do not stream. */
export function deltaOf({ delta, message }: Chunk = {}): Chunk {
  if (isRecord(delta)) return delta;
  return isRecord(message) ? message : {};
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null;
