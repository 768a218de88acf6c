import { isRecord } from "../../base/text/record.ts";
import { isSet, type Json, recordsIn, textOf } from "./answer-reader.ts";

/** Maximum length of a thought signature, in characters. Longer ones are dropped. */
const signatureLimit = 256 * 1024;

/** A tool call, or a fragment of one. Strings are empty where the server sent none. */
export interface CallFragment {
  readonly index: number | undefined;
  readonly id: string;
  name: string;
  arguments: string;
  signature: string;
}

const none: readonly never[] = [];

/** Returns the content of a delta. Texts are empty where the server sent none. `field` has the reasoning if it is text. */
export function parseContent(delta: Json) {
  const { content, reasoning_content, reasoning, reasoning_details: details, refusal } = delta;
  const field = textIn(reasoning_content) ? "reasoning_content" : textIn(reasoning) ? "reasoning" : undefined;
  // Most contents are text. Mistral and Databricks send reasoning as parts.
  const parts = Array.isArray(content) ? recordsIn(content) : undefined;
  const thoughts = parts && textIn(parts.filter(isThought));
  return {
    field,
    // Snowflake and MiniMax send reasoning only as details.
    reasoning: field === undefined ? textIn(details) || (thoughts ?? "") : textIn(delta[field]),
    text: parts === undefined ? textOf(content) : textIn(parts.filter((part) => !isThought(part))),
    refusal: textOf(refusal),
    calls: listCalls(delta),
  };
}

/** Older servers send a single call in `function_call`. */
function listCalls({ tool_calls: calls, function_call: only }: Json): readonly CallFragment[] {
  if (Array.isArray(calls)) return recordsIn(calls).map(toCallFragment);
  return isRecord(only) ? [toCallFragment({ index: 0, function: only })] : none;
}

/** Returns a string, or the text in an object or list, as vendors and gateways wrap it. */
function textIn(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(textIn).join("");
  if (!isRecord(value)) return "";
  return textIn(value.thinking) || textIn(value.text) || textIn(value.summary);
}

const isThought = ({ type }: Json): boolean => type === "thinking" || type === "reasoning";

function toCallFragment({ id, index, function: called, extra_content: extra }: Json): CallFragment {
  const { name, arguments: given } = isRecord(called) ? called : {};
  // Signatures of the Gemini API and Vertex.
  const { google, vertex } = isRecord(extra) ? extra : {};
  const signature = textOf([google, vertex].find(isRecord)?.thought_signature);
  return {
    index: typeof index === "number" ? index : undefined,
    id: typeof id === "number" ? String(id) : textOf(id),
    name: textOf(name).trim(),
    // Some servers send an object.
    arguments: typeof given !== "string" && isSet(given) ? JSON.stringify(given) : textOf(given),
    signature: signature.length > signatureLimit ? "" : signature,
  };
}

/** Returns the usage of a chunk: its own, of its choice (Moonshot), in a vendor's field (`x_groq`), or llama.cpp's timings. */
export function findUsage(chunk: Json, choice: Json = {}): unknown {
  if (isRecord(chunk.usage)) return chunk.usage;
  if (isRecord(choice.usage)) return choice.usage;
  for (const key in chunk) {
    const field = chunk[key];
    if (isRecord(field) && isRecord(field.usage)) return field.usage;
  }
  return chunk.timings;
}
