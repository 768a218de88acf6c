import { excerpt } from "../base/excerpt.ts";
import { isRecord } from "../base/record.ts";
import { parseJson } from "./event-splitter.ts";
import { fromAnswer, invalidResponse, ProviderFailure } from "./failure.ts";

/** A chunk of an answer, as servers send it. */
export type Chunk = Record<string, unknown>;

/** Longer ones are no signatures and are not kept. */
const signatureLimit = 256 * 1024;

/** A field of a delta whose pieces can be joined, and the piece. */
export interface Piece {
  readonly key: string;
  readonly text: string;
}

export function parseChunk(text: string): Chunk {
  const value = parseJson(text);
  if (isRecord(value)) return value;
  throw new ProviderFailure(
    invalidResponse(`The provider sent something that is not a JSON object: ${excerpt(text, 200)}`, true),
  );
}

/** The one piece of text that a chunk adds and nothing else, or undefined. */
export function pieceOf(value: Chunk): Piece | undefined {
  if (isSet(value.error) || isSet(value.usage) || value.type === "error") return undefined;
  const choice = firstChoice(value);
  if (choice === undefined || isSet(choice.finish_reason) || !isRecord(choice.delta)) return undefined;
  let piece: Piece | undefined;
  for (const key in choice.delta) {
    const field = choice.delta[key];
    if (field === null || field === "" || key === "role" || key === "reasoning_details") continue;
    const next = pieceOfField(key, field);
    if (next === undefined || (piece !== undefined && !isSameReasoning(piece, next))) return undefined;
    piece ??= next;
  }
  return piece;
}

function pieceOfField(key: string, field: unknown): Piece | undefined {
  if (key === "content" || key === "reasoning_content" || key === "reasoning") {
    return typeof field === "string" ? { key, text: field } : undefined;
  }
  return key === "tool_calls" ? pieceOfCall(field) : undefined;
}

function pieceOfCall(calls: unknown): Piece | undefined {
  if (!Array.isArray(calls) || calls.length !== 1) return undefined;
  const call: unknown = calls[0];
  if (!isRecord(call) || typeof call.index !== "number" || call.id || !isRecord(call.function))
    return undefined;
  if (signatureOf(call) !== undefined) return undefined;
  const { name, arguments: text } = call.function;
  return typeof text === "string" && !name ? { key: `call ${call.index}`, text } : undefined;
}

/** Older servers know one call only, which has a field of its own. */
export function callsIn({ tool_calls, function_call }: Chunk): Chunk[] | undefined {
  if (Array.isArray(tool_calls)) return tool_calls.filter(isRecord);
  return isRecord(function_call) ? [{ index: 0, function: function_call }] : undefined;
}

/** Google's place for it. */
export function signatureOf({ extra_content: extra }: Chunk): string | undefined {
  const google = isRecord(extra) && isRecord(extra.google) ? extra.google : {};
  const { thought_signature: signature } = google;
  return typeof signature === "string" && signature !== "" && signature.length <= signatureLimit
    ? signature
    : undefined;
}

/** Some servers send the same reasoning under both names. */
const isSameReasoning = (one: Piece, other: Piece): boolean =>
  one.text === other.text && one.key.startsWith("reasoning") && other.key.startsWith("reasoning");

export const callIndexOf = (key: string): number | undefined =>
  key.startsWith("call ") ? Number(key.slice("call ".length)) : undefined;

export function failOnError(value: Chunk): void {
  const reason = firstChoice(value)?.finish_reason;
  const failed = isSet(value.error) || value.type === "error" || reason === "error" || isOnlyWords(value);
  if (!failed) return;
  const body = JSON.stringify(isSet(value.error) ? { error: value.error } : value);
  throw new ProviderFailure(fromAnswer({ status: undefined, header: () => null, body, now: 0 }));
}

/** As vLLM, and servers made with FastAPI, put their errors. */
function isOnlyWords({ choices, object, message, detail }: Chunk): boolean {
  return choices === undefined && (object === "error" || isSet(message) || isSet(detail));
}

export function firstChoice(value: Chunk): Chunk | undefined {
  const first: unknown = Array.isArray(value.choices) ? value.choices[0] : undefined;
  return isRecord(first) ? first : undefined;
}

/** Servers that do not stream send `message` where others send `delta`. */
export function deltaOf({ delta, message }: Chunk = {}): Chunk {
  if (isRecord(delta)) return delta;
  return isRecord(message) ? message : {};
}

/** Some servers send the arguments as an object and not as text. */
export const argumentsText = (value: unknown): string =>
  typeof value === "string" ? value : isSet(value) ? JSON.stringify(value) : "";

/** The numbers of a usage and of its details. For a count of another type the SDK would refuse the whole answer. */
export function countsIn(usage: Chunk): Chunk {
  const counts = (fields: Chunk) => Object.entries(fields).flatMap(([name, field]) => toCount(name, field));
  const details = Object.entries(usage).flatMap(([name, field]) =>
    isRecord(field) ? [[name, Object.fromEntries(counts(field))] as const] : [],
  );
  return Object.fromEntries([...counts(usage), ...details]);
}

function toCount(name: string, field: unknown): (readonly [string, number])[] {
  const count = typeof field === "string" && field.trim() !== "" ? Number(field) : field;
  return typeof count === "number" && Number.isFinite(count) ? [[name, count]] : [];
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null;
