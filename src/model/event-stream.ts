import { randomUUID } from "node:crypto";
import { orAfter } from "../base/async.ts";
import { excerpt } from "../base/excerpt.ts";
import { isRecord } from "../base/record.ts";
import { EventSplitter, parseJson } from "./event-splitter.ts";
import { fromAnswer, invalidResponse, ProviderFailure } from "./failure.ts";
import type { HttpAnswer } from "./http.ts";

/** How long a provider may keep the connection open after it said that it is done, before it is cut. */
const drainMs = 1_000;

/** How long the usage may take to follow the reason for which the answer ended, whatever else comes meanwhile. */
const usageWaitMs = 5_000;

const ended = { done: true, value: undefined } as const;

/** Stands for the name of a call that the provider never named, so that the call is answered and not lost. */
const unnamedTool = "unnamed";

type Json = Record<string, unknown>;

/** Whoever reads a stream beside the SDK. */
export interface StreamWatch {
  /** Text that goes around the SDK. Returns a promise where reading on must wait for it. */
  readonly onText: (kind: "text" | "reasoning", text: string) => Promise<void> | undefined;
  /** What goes wrong inside the stream. */
  readonly onFailure: (thrown: unknown) => void;
  /** The thought signature of a call, told before the call itself. */
  readonly onSignature: (providerCallId: string, signature: string) => void;
  /** Pieces of the provider's own record of what was thought, as they come. */
  readonly onReasoningDetails: (details: readonly unknown[]) => void;
}

/** Longer ones are no signatures and are not kept. */
const signatureLimit = 256 * 1024;

/**
 * A provider's event stream as the SDK likes it best: one JSON chunk per event, odd fields mended, comments gone,
 * and what was read at once merged into as few events as possible. The SDK needs about 15 microseconds for each
 * event, and a third of a millisecond for one that comes alone: merged, 20,000 deltas that arrive together cost a
 * tenth of the time, and text before anything else, which is most of what streams, is told without the SDK.
 *
 * An error event, something that is not JSON, a broken connection or an end that came too early is given to
 * `onFailure` and ends the stream with an error event: a stream that errs would lose the text before the error.
 */
export function tidyEvents(answer: HttpAnswer, watch: StreamWatch): ReadableStream<Uint8Array> {
  const body = answer.body[Symbol.asyncIterator]();
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const events = new EventSplitter();
  const chunks = new ChunkMerger(watch);
  let waitsUntil: number | undefined;

  const readNext = () => {
    const next = body.next();
    if (!chunks.hasFinish) return next;
    waitsUntil ??= performance.now() + usageWaitMs;
    return orAfter(next, Math.max(0, waitsUntil - performance.now()), ended);
  };

  /** Reads on. Whether that was the end. */
  const readSome = async (): Promise<boolean> => {
    const { done = false, value } = await readNext();
    const texts = done ? events.end(decoder.decode()) : events.push(decoder.decode(value, { stream: true }));
    for (const text of texts) chunks.push(text);
    if (!done && !chunks.isDone) return false;
    // A server may answer with plain JSON and call it something else.
    if (!chunks.hasOutput) chunks.push(events.oddText);
    chunks.end();
    void drain(body, answer);
    return true;
  };

  const failed = (thrown: unknown): true => {
    if (chunks.hasFinish) chunks.end();
    else {
      watch.onFailure(thrown);
      chunks.fail();
    }
    void drain(body, answer);
    return true;
  };

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        let output = "";
        let ended = false;
        while (output === "" && !ended) {
          ended = await readSome().catch(failed);
          output = chunks.take();
          await chunks.room;
        }
        if (output !== "") controller.enqueue(encoder.encode(output));
        if (ended) controller.close();
      },
      cancel: () => answer.cut(),
    },
    { highWaterMark: 0 },
  );
}

/** A whole JSON answer of a server that does not stream, as a stream of one event. */
export function eventsOfAnswer(body: string, watch: StreamWatch): string {
  const chunks = new ChunkMerger(watch);
  chunks.push(body);
  chunks.end();
  return chunks.take();
}

/** Reads the rest, so that the connection can be used again; cuts it where the rest does not end. Never rejects. */
async function drain(body: AsyncIterator<Uint8Array>, answer: HttpAnswer): Promise<void> {
  const timer = setTimeout(() => answer.cut(), drainMs);
  try {
    while ((await body.next()).done !== true);
  } catch {
    // The answer is whole; how its connection ends does not matter any more.
  } finally {
    clearTimeout(timer);
  }
}

/** A field of a delta whose pieces can be joined, and the piece. */
interface Piece {
  readonly key: string;
  readonly text: string;
}

/** Collects chunks, joins neighbours that only add text to the same thing, and writes them as events. */
class ChunkMerger {
  isDone = false;
  /** The answer is whole: whatever happens to the connection now, it stands. */
  hasFinish = false;
  /** Whether anything of an answer came. */
  hasOutput = false;
  #output: string[] = [];
  #key: string | undefined;
  #texts: string[] = [];
  /** Whether something went to the SDK that text must not overtake. */
  #isThroughSdk = false;
  #room: Promise<void> | undefined;
  /** Whether the choice came that is the answer where there are several. */
  #hasFirstChoice = false;
  /** Calls by index: whether they have a name yet. */
  readonly #named = new Map<number, boolean>();
  readonly #watch: StreamWatch;

  constructor(watch: StreamWatch) {
    this.#watch = watch;
  }

  /** Resolves when there is room for more text. */
  get room(): Promise<void> | undefined {
    return this.#room;
  }

  push(data: string): void {
    const text = data.trim();
    if (text === "" || this.isDone) return;
    if (text === "[DONE]") {
      this.isDone = true;
      return;
    }
    const value = this.#withOneChoice(parse(text));
    const details = deltaOf(firstChoice(value)).reasoning_details;
    if (Array.isArray(details)) this.#watch.onReasoningDetails(details);
    const piece = pieceOf(value);
    if (piece === undefined) this.#write(this.#mend(value));
    else this.#append(piece);
  }

  /** Of several answers side by side the one that is numbered 0 counts, wherever it stands. */
  #withOneChoice(value: Json): Json {
    const choices: readonly unknown[] = Array.isArray(value.choices) ? value.choices : [];
    const at = choices.findIndex((choice) => isRecord(choice) && choice.index === 0);
    this.#hasFirstChoice ||= at !== -1;
    if (at > 0) return { ...value, choices: [choices[at]] };
    const isOfAnother = at === -1 && this.#hasFirstChoice && typeof firstChoice(value)?.index === "number";
    return isOfAnother ? { ...value, choices: [] } : value;
  }

  /** Closes the answer, or throws where it was cut off. */
  end(): void {
    if (!this.hasFinish) this.#endWithoutReason();
    const unnamed = [...this.#named].filter(([, named]) => !named).map(([index]) => index);
    if (unnamed.length > 0) {
      const calls = unnamed.map((index) => ({ index, function: { name: unnamedTool } }));
      this.#write({ choices: [{ index: 0, delta: { tool_calls: calls } }] });
    }
  }

  /** Ends with an error event, which is nothing but a sign: what went wrong is told elsewhere. */
  fail(): void {
    this.#write({ error: { message: "failed" } });
  }

  /** The events since the last call. */
  take(): string {
    this.#flush();
    const output = this.#output.join("");
    this.#output = [];
    return output;
  }

  /** "[DONE]" says that the answer is whole although no reason was given; a bare end does not. */
  #endWithoutReason(): void {
    if (!this.isDone) {
      const what = this.hasOutput ? "broke off before its answer was complete" : "answered with nothing";
      throw new ProviderFailure(invalidResponse(`The provider ${what}.`, true));
    }
    if (!this.hasOutput)
      throw new ProviderFailure(invalidResponse("The provider answered with nothing.", true));
    this.#write({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  }

  #append({ key, text }: Piece): void {
    if (this.#key !== key) this.#flush();
    this.#key = key;
    this.hasOutput = true;
    this.#texts.push(text);
  }

  #flush(): void {
    const key = this.#key;
    if (key === undefined) return;
    const text = this.#texts.join("");
    this.#key = undefined;
    this.#texts = [];
    if (!this.#isThroughSdk && !key.startsWith("call ")) {
      this.#room = this.#watch.onText(key === "content" ? "text" : "reasoning", text);
      return;
    }
    this.#isThroughSdk = true;
    const index = callIndexOf(key);
    const delta =
      index === undefined ? { [key]: text } : { tool_calls: [{ index, function: { arguments: text } }] };
    this.#output.push(eventOf({ choices: [{ index: 0, delta }] }));
  }

  #write(chunk: Json): void {
    this.#flush();
    this.#output.push(eventOf(chunk));
  }

  /** The chunk with only what the SDK reads, each field in the form that it expects. */
  #mend(value: Json): Json {
    failOnError(value);
    const choice = firstChoice(value);
    const usage = isRecord(value.usage) ? { usage: countsIn(value.usage) } : {};
    if (choice === undefined) return { choices: [], ...usage };
    const reason =
      typeof choice.finish_reason === "string" && choice.finish_reason !== "" ? choice.finish_reason : null;
    if (reason !== null) this.hasFinish = true;
    const delta = this.#mendDelta(deltaOf(choice));
    // Many begin with an empty text, which nothing can overtake.
    this.#isThroughSdk ||= reason !== null || Object.values(delta).some((field) => field !== "");
    return { choices: [{ index: 0, delta, finish_reason: reason }], ...usage };
  }

  #mendDelta(delta: Json): Json {
    const { content, reasoning_content, reasoning, refusal } = delta;
    const calls = callsIn(delta);
    const mended: Json = {};
    if (typeof content === "string" || Array.isArray(content)) mended.content = content;
    if (typeof reasoning_content === "string") mended.reasoning_content = reasoning_content;
    else if (typeof reasoning === "string") mended.reasoning = reasoning;
    if (typeof refusal === "string") mended.refusal = refusal;
    if (calls !== undefined) mended.tool_calls = calls.map((call) => this.#mendCall(call));
    if (Object.keys(mended).length > 0) this.hasOutput = true;
    return mended;
  }

  #mendCall(call: Json): Json {
    const asked = isRecord(call.function) ? call.function : {};
    const name = typeof asked.name === "string" && asked.name.trim() !== "" ? asked.name : null;
    // Google sends no index: whole calls need none.
    const index = typeof call.index === "number" ? call.index : undefined;
    if (index !== undefined) this.#named.set(index, (this.#named.get(index) ?? false) || name !== null);
    return {
      ...(index !== undefined && { index }),
      id: this.#idOf(call),
      function: { name, arguments: argumentsText(asked.arguments) },
    };
  }

  /** A call with a signature gets an id where it has none, so that both are found together again. */
  #idOf(call: Json): string | null {
    const id = typeof call.id === "string" || typeof call.id === "number" ? String(call.id) : "";
    const signature = signatureOf(call);
    if (signature === undefined) return id === "" ? null : id;
    const known = id === "" ? `call_${randomUUID()}` : id;
    this.#watch.onSignature(known, signature);
    return known;
  }
}

function parse(text: string): Json {
  const value = parseJson(text);
  if (isRecord(value)) return value;
  throw new ProviderFailure(
    invalidResponse(`The provider sent something that is not a JSON object: ${excerpt(text, 200)}`, true),
  );
}

/** The one piece of text that a chunk adds and nothing else, or undefined. */
function pieceOf(value: Json): Piece | undefined {
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
function callsIn({ tool_calls, function_call }: Json): Json[] | undefined {
  if (Array.isArray(tool_calls)) return tool_calls.filter(isRecord);
  return isRecord(function_call) ? [{ index: 0, function: function_call }] : undefined;
}

/** Google's place for it. */
function signatureOf({ extra_content: extra }: Json): string | undefined {
  const google = isRecord(extra) && isRecord(extra.google) ? extra.google : {};
  const { thought_signature: signature } = google;
  return typeof signature === "string" && signature !== "" && signature.length <= signatureLimit
    ? signature
    : undefined;
}

/** Some servers send the same reasoning under both names. */
const isSameReasoning = (one: Piece, other: Piece): boolean =>
  one.text === other.text && one.key.startsWith("reasoning") && other.key.startsWith("reasoning");

const callIndexOf = (key: string): number | undefined =>
  key.startsWith("call ") ? Number(key.slice("call ".length)) : undefined;

function failOnError(value: Json): void {
  const reason = firstChoice(value)?.finish_reason;
  const failed = isSet(value.error) || value.type === "error" || reason === "error" || isOnlyWords(value);
  if (!failed) return;
  const body = JSON.stringify(isSet(value.error) ? { error: value.error } : value);
  throw new ProviderFailure(fromAnswer({ status: undefined, header: () => null, body, now: 0 }));
}

/** As vLLM, and servers made with FastAPI, put their errors. */
function isOnlyWords({ choices, object, message, detail }: Json): boolean {
  return choices === undefined && (object === "error" || isSet(message) || isSet(detail));
}

function firstChoice(value: Json): Json | undefined {
  const first: unknown = Array.isArray(value.choices) ? value.choices[0] : undefined;
  return isRecord(first) ? first : undefined;
}

/** Servers that do not stream send `message` where others send `delta`. */
function deltaOf({ delta, message }: Json = {}): Json {
  if (isRecord(delta)) return delta;
  return isRecord(message) ? message : {};
}

/** Some servers send the arguments as an object and not as text. */
const argumentsText = (value: unknown): string =>
  typeof value === "string" ? value : isSet(value) ? JSON.stringify(value) : "";

/** The numbers of a usage and of its details. For a count of another type the SDK would refuse the whole answer. */
function countsIn(usage: Json): Json {
  const counts = (fields: Json) => Object.entries(fields).flatMap(([name, field]) => toCount(name, field));
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

const eventOf = (chunk: Json): string => `data: ${JSON.stringify(chunk)}\n\n`;
