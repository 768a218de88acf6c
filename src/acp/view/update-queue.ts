import type { Backpressure } from "../../base/async.ts";

interface Held {
  task: () => Backpressure;
  isOfTurn: boolean;
}

/** What of a session must not be sent yet: all that comes while something is held back waits, in order. */
export class UpdateQueue {
  #held: Held[] | undefined;
  #hasEnded = false;
  /** Requests whose answers it waits for. */
  #unanswered = 0;

  /** From here on everything is held back, until {@link release}. */
  hold(): void {
    this.#held ??= [];
  }

  /** The same until {@link answered}, and until all others that hold are answered too. */
  holdUntilAnswered(): void {
    this.#unanswered++;
    this.hold();
  }

  answered(): void {
    this.#unanswered--;
    if (this.#unanswered === 0) this.release();
  }

  /** Sends what was held back. */
  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const { task } of held) void task();
  }

  /** A request that is not answered yet may hold back what the turn's own answer or a question must not overtake. */
  async releaseOfTurn(): Promise<void> {
    if (this.#held === undefined) return;
    const ofTurn = this.#held.filter(({ isOfTurn }) => isOfTurn);
    this.#held = this.#held.filter(({ isOfTurn }) => !isOfTurn);
    for (const backpressure of ofTurn.map(({ task }) => task())) await backpressure;
  }

  /** The client closed the session: nothing is sent any more. */
  end(): void {
    this.#hasEnded = true;
    this.#held = undefined;
  }

  /** Runs the task when nothing is held back, behind what is; what is of a turn, before the turn's answer at the latest. */
  whenReleased(task: () => Backpressure, isOfTurn = false): Backpressure {
    if (this.#hasEnded) return undefined;
    if (this.#held === undefined) return task();
    this.#held.push({ task, isOfTurn });
    return undefined;
  }
}
