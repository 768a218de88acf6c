import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { randomUuid } from "../../base/text/hash.ts";
import { parseJson } from "../../base/text/json.ts";
import { isRecord, recordOf, recordsIn } from "../../base/text/record.ts";
import { unnamedTool } from "../answer/call-arguments.ts";
import { refusedCallForReason } from "../answer/refused-call.ts";
import { invalidResponse, ProviderFailure } from "../failure.ts";
import { adaptBody } from "../request/chat-body.ts";
import { AnswerReader, failOnError, isSet, type Json, textOf } from "./answer-reader.ts";
import { ReasoningDetails } from "./reasoning-details.ts";
import type { Wire } from "./wire.ts";

/** The provider name for options passed through the SDK. */
const sdkName = "fairlead";

/** OpenAI chat completions, in the dialects of all vendors. */
export const createModel: Wire["createModel"] = (settings, { endpoint, quirks, isRefused }) =>
  createOpenAICompatible({
    ...settings,
    name: sdkName,
    includeUsage: (endpoint.asksForUsage ?? true) && quirks.asksForUsage,
    transformRequestBody: (body) => adaptBody(body, quirks, quirks.marksCache && !isRefused("cache")),
  }).chatModel(endpoint.modelId);

export const adapt: Wire["adapt"] = (params, { quirks, cacheKey, isRefused, options }) => {
  const isKeyed = quirks.takesCacheKey && cacheKey !== undefined && !isRefused("cache-key");
  const sent = { ...(isKeyed && { prompt_cache_key: cacheKey }), ...options };
  // Without options the SDK loads no schema to validate them.
  return Object.keys(sent).length === 0 ? params : { ...params, providerOptions: { [sdkName]: sent } };
};

/** Maximum length of a thought signature, in characters. Longer ones are dropped. */
const signatureLimit = 256 * 1024;

/** A tool call, or a fragment of one. Strings are empty where the server sent none. */
interface CallFragment {
  readonly index: number | undefined;
  readonly id: string;
  name: string;
  arguments: string;
  signature: string;
}

/** Reads the chunks of chat completions in the forms of all vendors. */
export class Reader extends AnswerReader {
  /** Whether a choice with index 0 was seen. */
  #hasFirstChoice = false;
  #hasDelta = false;
  /** The field in which the thoughts came. */
  #thoughts: { readonly field: string } | undefined;
  readonly #details = new ReasoningDetails();
  readonly #calls: CallFragment[] = [];

  protected read(chunk: Json): void {
    const choice = this.#findChoice(chunk);
    this.reportUsage(findUsage(chunk, choice));
    const reason = choice?.finish_reason;
    failOnError(reason === "error" ? { ...chunk, type: reason } : chunk);
    if (choice === undefined) return;
    this.#readDelta(choice);
    if (typeof reason === "string") this.#stop(reason);
  }

  protected override endCalls(): void {
    for (const call of this.#calls) {
      if (call.name === "") this.#emitCall({ ...call, name: unnamedTool });
    }
  }

  /** Returns only the choice with index 0 where the provider sends several. */
  #findChoice({ choices }: Json): Json | undefined {
    if (!Array.isArray(choices)) return undefined;
    const first: unknown = choices.find((choice: unknown) => isRecord(choice) && choice.index === 0);
    this.#hasFirstChoice ||= first !== undefined;
    const choice: unknown = first ?? choices[0];
    if (!isRecord(choice)) return undefined;
    const isOfAnother = first === undefined && this.#hasFirstChoice && typeof choice.index === "number";
    return isOfAnother ? undefined : choice;
  }

  /** Reads `delta`, or `message` of servers that do not stream. */
  #readDelta({ delta, message }: Json): void {
    // MiniMax ends a stream with the whole message once more.
    if (this.#hasDelta && !isRecord(delta)) return;
    this.#hasDelta ||= isRecord(delta);
    const fields = isRecord(delta) ? delta : recordOf(message);
    this.#readReasoning(fields);
    const { content, refusal, tool_calls: calls, function_call: only } = fields;
    // Mistral and Databricks send parts.
    const text = typeof content === "string" ? content : textInParts(content, (part) => !isThought(part));
    this.append("text-delta", "text", text + textOf(refusal));
    this.hasRefusal ||= textOf(refusal) !== "";
    if (Array.isArray(calls)) for (const call of recordsIn(calls)) this.#addCall(toCallFragment(call));
    // Older servers send a single call.
    else if (isRecord(only)) this.#addCall(toCallFragment({ index: 0, function: only }));
  }

  #readReasoning(fields: Json): void {
    this.#details.add(fields);
    this.data = this.#details.fields;
    const field = thoughtFields.find((name) => textIn(fields[name]) !== "");
    if (field !== undefined) this.#thoughts ??= { field };
    // Snowflake and MiniMax send reasoning only as details.
    const reasoning =
      field === undefined
        ? textIn(fields.reasoning_details) || textInParts(fields.content, isThought)
        : textIn(fields[field]);
    this.append("reasoning-delta", "reasoning", reasoning, this.#thoughts);
  }

  #addCall(fragment: CallFragment): void {
    this.hasOutput = true;
    const call = this.#findCall(fragment);
    if (call === undefined) return this.#beginCall(fragment);
    const wasNamed = call.name !== "";
    call.name ||= fragment.name;
    call.arguments += fragment.arguments;
    call.signature ||= fragment.signature;
    if (wasNamed) this.append("tool-input-delta", call.id, fragment.arguments);
    else if (call.name !== "") this.#emitCall(call);
  }

  #beginCall(fragment: CallFragment): void {
    const isFree = fragment.id !== "" && this.#calls.every(({ id }) => id !== fragment.id);
    const call = { ...fragment, id: isFree ? fragment.id : `call_${randomUuid()}` };
    this.#calls.push(call);
    if (call.name !== "") this.#emitCall(call);
  }

  #emitCall({ id, name, arguments: text, signature }: CallFragment): void {
    this.startCall(id, name, signature === "" ? undefined : { thoughtSignature: signature });
    this.append("tool-input-delta", id, text);
  }

  /**
   * Returns the call that a fragment continues, or undefined if it begins a new one. Servers differ:
   *
   * - The index may be missing, or 0 for every call.
   * - The id may be missing, repeated with each fragment, or new for each fragment.
   * - The name may come late or more than once.
   */
  #findCall({ index, id, name }: CallFragment): CallFragment | undefined {
    const last =
      index === undefined
        ? (this.#calls.findLast((call) => call.id === id) ?? (id === "" ? this.#calls.at(-1) : undefined))
        : this.#calls.findLast((call) => call.index === index);
    if (last === undefined || name === "" || last.name === "") return last;
    const beginsAnother = (id !== "" && id !== last.id) || parseJson(last.arguments) !== undefined;
    return beginsAnother ? undefined : last;
  }

  #stop(reason: string): void {
    const refused = this.#calls.length === 0 ? refusedCallForReason(reason) : undefined;
    if (refused !== undefined) {
      const message = `The provider could not read a call of the model (${reason}).`;
      throw new ProviderFailure(invalidResponse(message, true), refused);
    }
    this.stop(reason === "stop" && this.hasRefusal ? "refusal" : reason);
  }
}

/** Fields of a delta that have reasoning as text. */
const thoughtFields = ["reasoning_content", "reasoning"] as const;

const isThought = ({ type }: Json): boolean => type === "thinking" || type === "reasoning";

const textInParts = (content: unknown, isWanted: (part: Json) => boolean): string =>
  Array.isArray(content) ? textIn(recordsIn(content).filter(isWanted)) : "";

/** Returns a string, or the text in an object or list, as vendors and gateways wrap it. */
function textIn(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(textIn).join("");
  if (!isRecord(value)) return "";
  return textIn(value.thinking) || textIn(value.text) || textIn(value.summary);
}

function toCallFragment({ id, index, function: called, extra_content: extra }: Json): CallFragment {
  const { name, arguments: given } = recordOf(called);
  // Signatures of the Gemini API and Vertex.
  const { google, vertex } = recordOf(extra);
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
function findUsage(chunk: Json, choice: Json = {}): unknown {
  if (isRecord(chunk.usage)) return chunk.usage;
  if (isRecord(choice.usage)) return choice.usage;
  for (const key in chunk) {
    const field = chunk[key];
    if (isRecord(field) && isRecord(field.usage)) return field.usage;
  }
  return chunk.timings;
}
