import { type Deferred, deferred } from "../../base/async.ts";
import { ChunkMerger, type StreamWatch } from "./chunk-merger.ts";
import { EventSplitter } from "./event-splitter.ts";
import type { HttpAnswer } from "../http.ts";

/** How long a provider may keep the connection open after it said that it is done, before it is cut. */
const drainMs = 1_000;

/** How long the usage may take to follow the reason for which the answer ended, whatever else comes meanwhile. */
const usageWaitMs = 5_000;

/** After so many characters the event loop gets a turn: Node hands on up to two MB without one. */
const charactersPerTurn = 256 * 1024;

const encoder = new TextEncoder();

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
  const relay = new EventRelay(answer, watch);
  return new ReadableStream(
    {
      start: (controller) => relay.start(controller),
      pull: () => relay.pull(),
      cancel: () => relay.cancel(),
    },
    { highWaterMark: 0 },
  );
}

/** Reads an answer as it comes: what text is in it is told before the next bytes can come. */
class EventRelay {
  readonly #answer: HttpAnswer;
  readonly #watch: StreamWatch;
  readonly #events = new EventSplitter();
  readonly #chunks: ChunkMerger;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #isOver = false;
  /** How many things reading has to wait for. */
  #waits = 0;
  /** Settled when the SDK asks for more. */
  #asked: Deferred<void> | undefined;
  #usageLimit: NodeJS.Timeout | undefined;
  #readInTurn = 0;

  constructor(answer: HttpAnswer, watch: StreamWatch) {
    this.#answer = answer;
    this.#watch = watch;
    this.#chunks = new ChunkMerger(watch);
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
    const body = this.#answer.body.setEncoding("utf8");
    body.on("data", (text: string) => this.#read(text));
    body.once("end", () => this.#end());
    body.once("error", (error) => this.#fail(error));
    // Cut without a word.
    body.once("close", () => this.#fail(new Error("the connection was closed")));
  }

  pull(): void {
    this.#asked?.resolve();
    this.#asked = undefined;
  }

  cancel(): void {
    this.#finish();
    this.#answer.cut();
  }

  #read(text: string): void {
    this.#attempt(() => {
      this.#push(this.#events.push(text));
      if (this.#chunks.isDone) this.#close();
      this.#shareLoop(text.length);
    });
  }

  #shareLoop(characters: number): void {
    this.#readInTurn += characters;
    if (this.#readInTurn < charactersPerTurn || this.#isOver) return;
    this.#readInTurn = 0;
    this.#waitFor(new Promise((resolve) => setImmediate(resolve)));
  }

  #end(): void {
    this.#attempt(() => {
      this.#push(this.#events.end());
      this.#close();
    });
  }

  /** Not when it is over: the rest is read all the same, so that the connection can be used again, and says nothing. */
  #attempt(step: () => void): void {
    if (this.#isOver) return;
    try {
      step();
      this.#give();
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #push(texts: readonly string[]): void {
    for (const text of texts) this.#chunks.push(text);
    // The usage may follow.
    if (this.#chunks.hasFinish && this.#usageLimit === undefined) this.#limitUsage();
  }

  /** While reading waits for whoever takes what was read, the usage may have come. */
  #limitUsage(): void {
    this.#usageLimit = setTimeout(() => (this.#waits > 0 ? this.#limitUsage() : this.#end()), usageWaitMs);
  }

  #close(): void {
    // A server may answer with plain JSON and call it something else.
    if (!this.#chunks.hasOutput) this.#chunks.push(this.#events.oddText);
    this.#chunks.end();
    this.#finish();
  }

  #fail(thrown: unknown): void {
    if (this.#isOver) return;
    if (this.#chunks.hasFinish) this.#chunks.end();
    else {
      this.#watch.onFailure(thrown);
      this.#chunks.fail();
    }
    this.#finish();
    this.#give();
  }

  #give(): void {
    const output = this.#chunks.take();
    if (output !== "") this.#controller?.enqueue(encoder.encode(output));
    if (this.#isOver) return this.#controller?.close();
    const backpressure = this.#chunks.takeBackpressure();
    if (backpressure !== undefined) this.#waitFor(backpressure);
    if ((this.#controller?.desiredSize ?? 0) >= 0) return;
    this.#asked ??= deferred<void>();
    this.#waitFor(this.#asked.promise);
  }

  #waitFor(backpressure: Promise<void>): void {
    const { body } = this.#answer;
    this.#waits++;
    body.pause();
    void backpressure.then(() => {
      if (--this.#waits === 0) body.resume();
    });
  }

  /** Nothing more is told. What does not end is cut. */
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

/** A whole JSON answer of a server that does not stream, as a stream of one event. */
export function eventsOfAnswer(body: string, watch: StreamWatch): string {
  const chunks = new ChunkMerger(watch);
  chunks.push(body);
  chunks.end();
  return chunks.take();
}
