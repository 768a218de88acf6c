import type { Backpressure } from "../../base/async.ts";

interface QueuedUpdate {
  task: () => Backpressure;
  isTurnUpdate: boolean;
}

/** What of a session must not be sent yet: all that comes while something is held back waits, in order. */
export class UpdateQueue {
  #queue: QueuedUpdate[] | undefined;
  #hasEnded = false;
  /** Requests whose answers it waits for. */
  #unanswered = 0;

  /** From here on everything is held back, until {@link release}. */
  hold(): void {
    this.#queue ??= [];
  }

  /** The same until {@link geted}, and until all others that hold are answered too. */
  holdUntilAnswered(): void {
    this.#unanswered++;
    this.hold();
  }

  responded(): void {
    this.#unanswered--;
    if (this.#unanswered === 0) this.release();
  }

  /** Sends what was held back. */
  release(): void {
    const held = this.#queue ?? [];
    this.#queue = undefined;
    for (const { task } of held) void task();
  }

  /** A request that is not answered yet may hold back what the turn's own answer or a question must not overtake. */
  async releaseTurnUpdates(): Promise<void> {
    if (this.#queue === undefined) return;
    const ofTurn = this.#queue.filter(({ isTurnUpdate: isOfTurn }) => isOfTurn);
    this.#queue = this.#queue.filter(({ isTurnUpdate: isOfTurn }) => !isOfTurn);
    for (const backpressure of ofTurn.map(({ task }) => task())) await backpressure;
  }

  /** The client closed the session: nothing is sent any more. */
  end(): void {
    this.#hasEnded = true;
    this.#queue = undefined;
  }

  /** Runs the task when nothing is held back, behind what is; what is of a turn, before the turn's answer at the latest. */
  sendWhenReleased(task: () => Backpressure, isOfTurn = false): Backpressure {
    if (this.#hasEnded) return undefined;
    if (this.#queue === undefined) return task();
    this.#queue.push({ task, isTurnUpdate: isOfTurn });
    return undefined;
  }
}
