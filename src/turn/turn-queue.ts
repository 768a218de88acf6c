import { deferred, type Deferred } from "../base/async.ts";
import type { PromptInput } from "../conversation/prompt-input.ts";
import { noTokens, type TurnResult } from "../conversation/turn-result.ts";
import { InputQueue } from "../user-input/input-queue.ts";

/** Maximum time from a cancel to the turn's result, whatever a provider or a tool does. */
const cancelLimitMs = 2_500;

export interface TurnQueueDeps {
  /** Must not reject. */
  run(input: PromptInput, signal: AbortSignal): Promise<TurnResult>;
  /** Called when a turn was answered; undefined if it did not end in time after a cancel. Must not throw. */
  onAnswered(ended: TurnResult | undefined): void;
}

/** Runs the turns of a session one after the other, in the order of their messages. */
export class TurnQueue {
  readonly #deps: TurnQueueDeps;
  readonly #queue = new InputQueue<QueuedPrompt>();
  #isClosed = false;
  #running: { prompt: QueuedPrompt; abort: AbortController; ended: Promise<void> } | undefined;
  #newest: Promise<TurnResult> | undefined;

  constructor(deps: TurnQueueDeps) {
    this.#deps = deps;
  }

  get isBusy(): boolean {
    return this.#running !== undefined || this.#queue.length > 0;
  }

  /** Whether messages wait for the running turn. */
  get hasWaiting(): boolean {
    return this.#queue.length > 0;
  }

  /** Whether the running turn is cancelled. */
  get isCancelled(): boolean {
    return this.#running?.abort.signal.aborted === true;
  }

  /** The result of the newest message's turn; undefined while no turn runs. */
  get newest(): Promise<TurnResult> | undefined {
    return this.isBusy ? this.#newest : undefined;
  }

  /** Resolves when no turn runs or waits. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running.ended;
  }

  /** Queues a message. The promise resolves with the result of its turn. The signal cancels this turn only. */
  add(input: PromptInput, signal?: AbortSignal): Promise<TurnResult> {
    if (this.#isClosed || signal?.aborted) return Promise.resolve(cancelled);
    const waiting = { input, result: deferred<TurnResult>() };
    this.#queue.push(waiting);
    this.#newest = waiting.result.promise;
    if (this.#running === undefined) this.#runNext();
    signal?.addEventListener("abort", () => this.#cancelOne(waiting), { once: true });
    return waiting.result.promise;
  }

  /** Removes a message whose turn has not begun. Returns whether there is one. */
  remove(id: string): boolean {
    return this.#drop(({ input }) => input.injectId === id);
  }

  /** Replaces a message whose turn has not begun. Returns whether there is one. */
  replace(id: string, input: PromptInput): boolean {
    return this.#queue.replace(id, input);
  }

  /** Whether the message's turn has begun. */
  hasRead(id: string): boolean {
    return this.#queue.hasRead(id);
  }

  #cancelOne(prompt: QueuedPrompt): void {
    if (!this.#drop((other) => other === prompt) && this.#running?.prompt === prompt)
      this.#running.abort.abort();
  }

  #drop(isWanted: (prompt: QueuedPrompt) => boolean): boolean {
    const dropped = this.#queue.remove(isWanted);
    dropped?.result.resolve(cancelled);
    return dropped !== undefined;
  }

  /** Cancels the running turn and all queued ones; does nothing without one. */
  cancel(): void {
    for (const { result } of this.#queue.clear()) result.resolve(cancelled);
    this.#running?.abort.abort();
  }

  /** Cancels everything, rejects new messages and resolves when the running turn has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.cancel();
    await this.idle();
  }

  #runNext(): void {
    const next = this.#queue.shift();
    if (next === undefined) return;
    const abort = new AbortController();
    const ended = this.#runOne(next, abort.signal).finally(() => {
      this.#running = undefined;
      this.#runNext();
    });
    this.#running = { prompt: next, abort, ended };
  }

  async #runOne({ input, result }: QueuedPrompt, signal: AbortSignal): Promise<void> {
    const limit = afterAbort(signal, cancelLimitMs);
    const ended = await Promise.race([this.#deps.run(input, signal), limit.promise]);
    limit.stop();
    result.resolve(ended ?? cancelled);
    this.#deps.onAnswered(ended);
  }
}

const cancelled: TurnResult = { end: "cancelled", tokens: noTokens };

interface QueuedPrompt {
  input: PromptInput;
  result: Deferred<TurnResult>;
}

/** Resolves with undefined when the limit has passed since the signal aborted. */
function afterAbort(signal: AbortSignal, limitMs: number): { promise: Promise<undefined>; stop(): void } {
  const passed = deferred<undefined>();
  let timer: NodeJS.Timeout | undefined;
  const start = () => (timer = setTimeout(() => passed.resolve(undefined), limitMs));
  if (signal.aborted) start();
  else signal.addEventListener("abort", start, { once: true });
  const stop = () => {
    signal.removeEventListener("abort", start);
    clearTimeout(timer);
  };
  return { promise: passed.promise, stop };
}
