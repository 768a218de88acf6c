import type { Backpressure } from "../../base/async.ts";

interface QueuedUpdate {
  task: () => Backpressure;
  isTurnUpdate: boolean;
}

/** Queue of a session's updates. While it is paused, updates wait in order. */
export class UpdateQueue {
  #queue: QueuedUpdate[] | undefined;
  #hasEnded = false;
  /** Number of unanswered requests that pause the queue. */
  #unanswered = 0;

  /** Pauses the queue until {@link release}. */
  hold(): void {
    this.#queue ??= [];
  }

  /** Pauses the queue until {@link responded} was called once for each such request. */
  holdUntilAnswered(): void {
    this.#unanswered++;
    this.hold();
  }

  responded(): void {
    this.#unanswered--;
    if (this.#unanswered === 0) this.release();
  }

  /** Sends the queued updates and resumes. */
  release(): void {
    const held = this.#queue ?? [];
    this.#queue = undefined;
    for (const { task } of held) void task();
  }

  /** Sends only the queued updates of the turn, which must precede the turn's response or a question. */
  async releaseTurnUpdates(): Promise<void> {
    if (this.#queue === undefined) return;
    const ofTurn = this.#queue.filter(({ isTurnUpdate: isOfTurn }) => isOfTurn);
    this.#queue = this.#queue.filter(({ isTurnUpdate: isOfTurn }) => !isOfTurn);
    for (const backpressure of ofTurn.map(({ task }) => task())) await backpressure;
  }

  /** Drops all updates from now on, because the client closed the session. */
  end(): void {
    this.#hasEnded = true;
    this.#queue = undefined;
  }

  /** Runs the task now, or after the queued ones while paused. A turn update runs before the turn's response at the latest. */
  sendWhenReleased(task: () => Backpressure, isOfTurn = false): Backpressure {
    if (this.#hasEnded) return undefined;
    if (this.#queue === undefined) return task();
    this.#queue.push({ task, isTurnUpdate: isOfTurn });
    return undefined;
  }
}
