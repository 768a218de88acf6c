import { excerpt } from "../../base/text/excerpt.ts";
import { parseJson } from "../../base/text/json.ts";
import { isRecord } from "../../base/text/record.ts";
import { parseArguments, unnamedTool } from "./call-arguments.ts";

/** A call that the provider refused to pass on, for the model to read. */
export interface RefusedCall {
  readonly tool: string;
  /** Undefined where the provider did not send arguments that parse. */
  readonly input: unknown;
  /** The provider's reason, with the text of the call where it could not be read. */
  readonly problem: string;
}

/** Longest text of a refused call that goes back to the model, in characters. */
const generationLimit = 2_000;

/** How deep gateways wrap the error of a provider. */
const wrapLimit = 8;

/** Messages of Groq and Cerebras, where no code says it. */
const refusalWords = /failed to (?:call a function|generate tool[_ ]?calls?)|tool call validation failed/i;

/** Finish reasons by which Gemini says that a call could not be read. */
const malformedReasons = /malformed_(?:function|tool)_call|unexpected_tool_call/i;

/**
 * The call that an error is about, where a provider checks calls itself and refused one
 * (https://github.com/langchain4j/langchain4j/issues/2585); undefined for any other error.
 */
export function refusedCallIn(body: string): RefusedCall | undefined {
  const error = refusalIn(parseJson(body), wrapLimit);
  if (error === undefined) return undefined;
  const message = typeof error.message === "string" ? error.message : "The call could not be read.";
  const generation = typeof error.failed_generation === "string" ? error.failed_generation.trim() : "";
  return toRefusedCall(message, generation);
}

/** The same for a finish reason, which says nothing of the call. */
export function refusedCallOf(finishReason: string): RefusedCall | undefined {
  if (!malformedReasons.test(finishReason)) return undefined;
  return toRefusedCall(`The call could not be read (${finishReason}).`, "");
}

/** Gateways wrap errors in errors, or put them as JSON into a text (OpenRouter `raw`, LiteLLM `message`). */
function refusalIn(value: unknown, depth: number): Record<string, unknown> | undefined {
  if (depth === 0) return undefined;
  if (typeof value === "string") return refusalIn(jsonIn(value), depth - 1);
  if (!isRecord(value)) return undefined;
  if (isRefusal(value)) return value;
  const { error, metadata, raw, message } = value;
  for (const inner of [error, metadata, raw, message]) {
    const found = refusalIn(inner, depth - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isRefusal({ code, message, failed_generation: generation }: Record<string, unknown>): boolean {
  if (code === "tool_use_failed") return true;
  if (typeof message !== "string" || jsonIn(message) !== undefined) return false;
  return refusalWords.test(message) || (typeof generation === "string" && code === undefined);
}

/** The JSON at the end of a text. */
function jsonIn(text: string): unknown {
  const start = text.indexOf("{");
  return start === -1 ? undefined : parseJson(text.slice(start));
}

function toRefusedCall(message: string, generation: string): RefusedCall {
  const call = callIn(generation);
  const lead = "The provider refused this call and nothing was run:";
  const written =
    call.input === undefined && generation !== ""
      ? `\nYou wrote:\n${excerpt(generation, generationLimit)}`
      : "";
  const next =
    "Call a tool again in the form that the tool definitions give, with arguments that fit its schema.";
  return { ...call, problem: `${lead} ${message}${written}\n${next}` };
}

interface WrittenCall {
  readonly tool: string;
  readonly input: unknown;
}

/** The call in what the model wrote: JSON with a name and arguments, or a name before an object. */
function callIn(generation: string): WrittenCall {
  const call = firstCall(jsonIn(generation) ?? parseJson(generation));
  if (call !== undefined) return call;
  const name = /^(?:<function[=(])?\s*"?([\w.-]{1,64})"?[)>,=\s]*[{<]/.exec(generation)?.[1];
  const { input } = parseArguments(objectIn(generation));
  return { tool: name ?? unnamedTool, input: name === undefined ? undefined : input };
}

function firstCall(value: unknown): WrittenCall | undefined {
  if (Array.isArray(value)) return firstCall(value[0]);
  if (!isRecord(value)) return undefined;
  if (Array.isArray(value.tool_calls)) return firstCall(value.tool_calls);
  const { name, arguments: given = value.parameters } = isRecord(value.function) ? value.function : value;
  if (typeof name !== "string" || name === "") return undefined;
  const input = typeof given === "string" ? parseArguments(given).input : given;
  return { tool: name, input: isRecord(input) ? input : undefined };
}

/** From the first brace to the last one. */
const objectIn = (text: string): string => text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1);
