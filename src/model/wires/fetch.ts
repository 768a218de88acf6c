import { toWellFormedJson } from "../../base/text/json.ts";
import { parseRefusedCall } from "../answer/refused-call.ts";
import { invalidResponse, isWebPage, parseErrorAnswer, ProviderFailure, titleOf } from "../failure.ts";
import type { HttpAnswer, Send } from "../http.ts";
import { followRedirects, readText } from "../redirects.ts";
import type { AnswerNotes } from "./answer-notes.ts";
import type { AnswerReader } from "./answer-reader.ts";
import { EventSplitter } from "./event-splitter.ts";

export type Fetch = typeof globalThis.fetch;

/** Maximum size of an error body, in bytes. */
const errorBodyLimitBytes = 64 * 1024;
/** Timeout to read an error body. */
const errorBodyLimitMs = 2_000;

/** How long the provider may hold the connection open after the answer is done, before it is closed. */
const drainMs = 1_000;
/** How long to wait for the usage after the finish reason. */
const usageWaitMs = 5_000;
/** Yields to the event loop after this many characters: Node delivers up to 2 MB without yielding. */
const charactersPerTurn = 256 * 1024;

const encoder = new TextEncoder();

/**
 * Creates the `fetch` that the SDK calls.
 *
 * - Redirects are followed on the same origin only, so that keys are not sent elsewhere.
 * - Rejects with a {@link ProviderFailure} if the provider refuses.
 * - The body has the events that a reader of the wire writes for the SDK. If the answer breaks off, the body ends after the
 *   events before and `notes.failure` says why: a body with an error would lose events that are not read yet.
 */
export function createFetch(send: Send, readerFor: (signal: AbortSignal) => AnswerReader): Fetch {
  return async (input, init) => {
    const { body, signal } = init ?? {};
    if (typeof input !== "string" || typeof body !== "string" || !signal)
      throw new Error("unexpected request format of the SDK");
    const request = {
      method: "POST",
      headers: copyHeaders(init),
      body: [Buffer.from(toWellFormedJson(body))],
      signal,
    } as const;
    const answer = await followRedirects(send, new URL(input), request);
    if (answer.status < 200 || answer.status >= 300) throw await toFailure(answer, signal);
    return asResponse(answerEvents(answer, readerFor(signal)));
  };
}

/** Returns the SDK's headers without its user agent and without empty keys. */
function copyHeaders(init: RequestInit | undefined): Record<string, string> {
  const { headers = {} } = init ?? {};
  const copies = Object.entries(headers).map(([name, value]) => [name, String(value)] as const);
  return Object.fromEntries(copies.filter(([, value]) => value !== "" && value !== "Bearer "));
}

async function toFailure(answer: HttpAnswer, signal: AbortSignal): Promise<ProviderFailure> {
  const body = await readErrorBody(answer, signal);
  return new ProviderFailure(parseErrorAnswer({ ...answer, body, now: Date.now() }), parseRefusedCall(body));
}

/** Reads an error body. Returns "" if it breaks off or times out, so that the status is still reported. */
async function readErrorBody(answer: HttpAnswer, signal: AbortSignal): Promise<string> {
  const timer = setTimeout(() => answer.cut(), errorBodyLimitMs);
  try {
    return await readText(answer, errorBodyLimitBytes);
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    return "";
  } finally {
    clearTimeout(timer);
  }
}

/** Creates an object with the members of `Response` that the SDK reads. Node's class would load its whole fetch. */
function asResponse(body: ReadableStream<Uint8Array>): Response {
  const headers = new Map([["content-type", "text/event-stream"]]);
  return Object.assign(Object.create(null), { ok: true, status: 200, headers, body });
}

/** Returns the events for the SDK. What one network read brought becomes one chunk. */
export function answerEvents(answer: HttpAnswer, reader: AnswerReader): ReadableStream<Uint8Array> {
  const source = new AnswerSource(answer, reader);
  return new ReadableStream(source, { highWaterMark: 0 });
}

class AnswerSource {
  readonly #answer: HttpAnswer;
  readonly #reader: AnswerReader;
  readonly #notes: AnswerNotes;
  readonly #events = new EventSplitter();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #isOver = false;
  #usageLimit: NodeJS.Timeout | undefined;
  #charactersInTurn = 0;

  constructor(answer: HttpAnswer, reader: AnswerReader) {
    this.#answer = answer;
    this.#reader = reader;
    this.#notes = reader.notes;
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
    const body = this.#answer.body.setEncoding("utf8");
    body.on("data", (text: string) => this.#advance(() => this.#read(text)));
    body.once("end", () => this.#advance(() => this.#end()));
    body.once("error", (error) => this.#fail(error));
    // Closed without an end or an error.
    body.once("close", () => this.#fail(new Error("the connection was closed")));
  }

  pull(): void {
    this.#answer.body.resume();
  }

  cancel(): void {
    this.#finish();
    this.#answer.cut();
  }

  #read(text: string): void {
    const events = this.#events.push(text);
    if (events.length > 0) this.#notes.onActivity();
    for (const event of events) this.#reader.push(event);
    if (this.#reader.isDone) this.#complete();
    else if (this.#reader.hasFinish) this.#usageLimit ??= this.#limitUsageWait();
    this.#charactersInTurn += text.length;
    if (this.#charactersInTurn < charactersPerTurn || this.#isOver) return;
    this.#charactersInTurn = 0;
    this.#answer.body.pause();
    setImmediate(() => this.#answer.body.resume());
  }

  #end(): void {
    for (const event of this.#events.end()) this.#reader.push(event);
    this.#complete();
  }

  /** Ends the stream when the usage takes too long. While reading is paused, the timer restarts. */
  #limitUsageWait(): NodeJS.Timeout {
    return setTimeout(() => {
      if (this.#answer.body.isPaused()) this.#usageLimit = this.#limitUsageWait();
      else this.#advance(() => this.#end());
    }, usageWaitMs);
  }

  #complete(): void {
    const { nonEventText } = this.#events;
    // Servers that do not stream send one JSON object, or a web page.
    if (!this.#reader.hasOutput && !this.#reader.hasFinish && nonEventText !== "") {
      if (isWebPage(this.#answer, nonEventText)) throw webPage(nonEventText);
      this.#reader.push(nonEventText);
    }
    this.#reader.end();
    this.#finish();
  }

  /** Does nothing once the answer is over. The rest is only drained so that the connection can be reused. */
  #advance(step: () => void): void {
    if (this.#isOver) return;
    try {
      step();
    } catch (thrown) {
      return this.#fail(thrown);
    }
    this.#flush();
  }

  #fail(thrown: unknown): void {
    if (this.#isOver) return;
    if (this.#reader.hasFinish) this.#reader.end();
    else this.#notes.failure = thrown;
    this.#finish();
    this.#flush();
  }

  #flush(): void {
    const output = this.#reader.take();
    if (output !== "") this.#controller?.enqueue(encoder.encode(output));
    if (this.#isOver) this.#controller?.close();
    else if ((this.#controller?.desiredSize ?? 0) < 0) this.#answer.body.pause();
  }

  /** Stops emitting and drains the connection, which is closed after {@link drainMs}. */
  #finish(): void {
    this.#isOver = true;
    clearTimeout(this.#usageLimit);
    const { body } = this.#answer;
    if (body.readableEnded || body.destroyed) return;
    const limit = setTimeout(() => this.#answer.cut(), drainMs);
    body.once("close", () => clearTimeout(limit));
    body.resume();
  }
}

function webPage(text: string): ProviderFailure {
  const message = `The provider answered with a web page${titleOf(text)}, not with a model's answer. Is the base URL right?`;
  return new ProviderFailure(invalidResponse(message, false));
}
