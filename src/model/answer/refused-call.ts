import { excerpt } from "../../base/text/excerpt.ts";
import { parseJson } from "../../base/text/json.ts";
import { isRecord } from "../../base/text/record.ts";
import { parseArguments, unnamedTool } from "./call-arguments.ts";

/** A tool call that the provider rejected, with a text for the model. */
export interface RefusedCall {
  readonly tool: string;
  /** Undefined if the provider sent no arguments that parse. */
  readonly input: unknown;
  /** The provider's reason, with the text of the call if it could not be parsed. */
  readonly problem: string;
}

/** Maximum length of a rejected call that is quoted to the model, in characters. */
const generationLimit = 2_000;

/** How many levels of wrapped errors are searched. */
const wrapLimit = 8;

/** Messages of Groq and Cerebras, for errors without a code. */
const refusalPatterns = /failed to (?:call a function|generate tool[_ ]?calls?)|tool call validation failed/i;

/** Finish reasons of Gemini for a call that it could not parse. */
const malformedReasons = /malformed_(?:function|tool)_call|unexpected_tool_call/i;

/**
 * Returns the call that a provider rejected after validating it (https://github.com/langchain4j/langchain4j/issues/2585);
 * undefined for any other error.
 */
export function parseRefusedCall(body: string): RefusedCall | undefined {
  const error = findRefusal(parseJson(body), wrapLimit);
  if (error === undefined) return undefined;
  const message = typeof error.message === "string" ? error.message : "The call could not be read.";
  const generation = typeof error.failed_generation === "string" ? error.failed_generation.trim() : "";
  return toRefusedCall(message, generation);
}

/** Returns the rejected call for a finish reason, which does not name the call. */
export function refusedCallForReason(finishReason: string): RefusedCall | undefined {
  if (!malformedReasons.test(finishReason)) return undefined;
  return toRefusedCall(`The call could not be read (${finishReason}).`, "");
}

/** Searches nested errors. Gateways wrap them in objects or as JSON in strings (OpenRouter `raw`, LiteLLM `message`). */
function findRefusal(value: unknown, depth: number): Record<string, unknown> | undefined {
  if (depth === 0) return undefined;
  if (typeof value === "string") return findRefusal(parseTrailingJson(value), depth - 1);
  if (!isRecord(value)) return undefined;
  if (isRefusal(value)) return value;
  const { error, metadata, raw, message } = value;
  for (const inner of [error, metadata, raw, message]) {
    const found = findRefusal(inner, depth - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isRefusal({ code, message, failed_generation: generation }: Record<string, unknown>): boolean {
  if (code === "tool_use_failed") return true;
  if (typeof message !== "string" || parseTrailingJson(message) !== undefined) return false;
  return refusalPatterns.test(message) || (typeof generation === "string" && code === undefined);
}

/** Parses the JSON at the end of a text. */
function parseTrailingJson(text: string): unknown {
  const start = text.indexOf("{");
  return start === -1 ? undefined : parseJson(text.slice(start));
}

function toRefusedCall(message: string, generation: string): RefusedCall {
  const call = parseGeneration(generation);
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

/** Parses the model's text: JSON with a name and arguments, or a name before an object. */
function parseGeneration(generation: string): WrittenCall {
  const call = firstCall(parseTrailingJson(generation) ?? parseJson(generation));
  if (call !== undefined) return call;
  const name = /^(?:<function[=(])?\s*"?([\w.-]{1,64})"?[)>,=\s]*[{<]/.exec(generation)?.[1];
  const { input } = parseArguments(sliceObject(generation));
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

/** Returns the text from the first to the last brace. */
const sliceObject = (text: string): string => text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1);
