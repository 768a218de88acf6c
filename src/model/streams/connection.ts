import { invalidResponse, isWebPage, ProviderFailure, stallError, titleOf } from "../failure.ts";
import type { HttpAnswer } from "../http.ts";
import { EventSplitter } from "./event-splitter.ts";

/** How long the provider may hold the connection open after the answer is done, before it is closed. */
const drainMs = 1_000;
/** How long to wait for the usage after the finish reason. */
const usageWaitMs = 5_000;
/** Yields to the event loop after this many characters: Node delivers up to 2 MB without yielding. */
const charactersPerTurn = 256 * 1024;

/** Reads the events of one answer. */
export interface EventReader<Part> {
  /** Whether the provider has nothing more to send. */
  readonly isDone: boolean;
  /** Whether the answer is complete. Connection errors after this are ignored. */
  readonly hasFinish: boolean;
  /** Whether the answer has any content. */
  readonly hasOutput: boolean;
  /** Reads the data of an event. Throws if it is an error. */
  push(data: string): void;
  /** Completes the answer. Throws if it was cut off. */
  end(): void;
  /** Ends the answer with an error. */
  fail(error: unknown): void;
  /** Returns and clears the parts read since the last call. */
  take(): Part[];
}

/** The connection of one call. Ends with the request, or when the provider sends nothing for too long. */
export class Connection {
  readonly #request: AbortSignal;
  readonly #controller = new AbortController();
  readonly #silence: NodeJS.Timeout;
  #isHeld = false;

  constructor(request: AbortSignal, stallMs: number) {
    this.#request = request;
    this.#silence = setTimeout(() => {
      if (this.#isHeld) this.#silence.refresh();
      else this.#controller.abort(new ProviderFailure(stallError(stallMs)));
    }, stallMs);
    if (request.aborted) this.#abort();
    request.addEventListener("abort", this.#abort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Returns the parts that a reader finds in the events of an answer. If it breaks off, the parts before are kept. */
  read<Part>(answer: HttpAnswer, reader: EventReader<Part>): ReadableStream<Part> {
    return new ReadableStream(new AnswerSource(answer, reader, this), { highWaterMark: 0 });
  }

  /** The provider sent something. */
  touch(): void {
    this.#isHeld = false;
    this.#silence.refresh();
  }

  /** Stops the timeout until the next `touch`: the time that the consumer needs does not count. */
  hold(): void {
    this.#isHeld = true;
  }

  /** Stops the timeout. What is left of an answer may still be drained. */
  close(): void {
    clearTimeout(this.#silence);
    this.#request.removeEventListener("abort", this.#abort);
  }

  /** Closes the connection of a call that failed. */
  cut(): void {
    this.#controller.abort();
  }

  readonly #abort = (): void => this.#controller.abort(this.#request.reason);
}

class AnswerSource<Part> {
  readonly #answer: HttpAnswer;
  readonly #reader: EventReader<Part>;
  readonly #connection: Connection;
  readonly #events = new EventSplitter();
  #controller: ReadableStreamDefaultController<Part> | undefined;
  #isOver = false;
  #usageLimit: NodeJS.Timeout | undefined;
  #charactersInTurn = 0;

  constructor(answer: HttpAnswer, reader: EventReader<Part>, connection: Connection) {
    this.#answer = answer;
    this.#reader = reader;
    this.#connection = connection;
  }

  start(controller: ReadableStreamDefaultController<Part>): void {
    this.#controller = controller;
    const { signal } = this.#connection;
    const body = this.#answer.body.setEncoding("utf8");
    body.on("data", (text: string) => this.#advance(() => this.#read(text)));
    body.once("end", () => this.#advance(() => this.#end()));
    body.once("error", (error) => this.#fail(error));
    // Closed without an end or an error.
    body.once("close", () => this.#fail(new Error("the connection was closed")));
    const abort = () => this.#fail(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
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
    if (events.length > 0) this.#connection.touch();
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
    const { signal } = this.#connection;
    if (signal.aborted) this.#reader.fail(signal.reason);
    else if (this.#reader.hasFinish) this.#reader.end();
    else this.#reader.fail(thrown);
    this.#finish();
    this.#flush();
  }

  #flush(): void {
    for (const part of this.#reader.take()) this.#controller?.enqueue(part);
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
