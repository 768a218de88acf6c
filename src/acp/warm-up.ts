import { setTimeout as sleep } from "node:timers/promises";
import type { Outbox } from "./transport/outbox.ts";

export interface WarmUpDeps {
  outbox: Outbox;
  /** Loads modules for the first prompt. Must not throw. */
  loadTurn: () => Promise<void>;
  /** Loads modules for the first tool call. Must not throw. */
  loadCalls: () => Promise<void>;
  /** Called once: after the first turn, or when the warm-up time has passed. */
  settle: () => void;
}

/** Idle time on the wire before modules are loaded in advance: no prompt is starting and no text is streaming. */
const quietMs = 250;

const openingMethods: ReadonlySet<string> = new Set(["session/new", "session/load", "session/resume"]);

/** Loads modules in advance, after the response to the first request that opens a session. */
export class WarmUp {
  readonly #deps: WarmUpDeps;
  #isStarted = false;
  #isSettled = false;
  #isEnded = false;

  constructor(deps: WarmUpDeps) {
    this.#deps = deps;
  }

  onAnswered(method: string): void {
    if (method === "session/prompt") this.#settle();
    if (this.#isStarted || !openingMethods.has(method)) return;
    this.#isStarted = true;
    void this.#run();
  }

  /** Stops loading when the client is gone. */
  end(): void {
    this.#isEnded = true;
  }

  async #run(): Promise<void> {
    const { outbox, loadTurn, loadCalls } = this.#deps;
    await outbox.flush();
    if (this.#isEnded) return;
    await loadTurn();
    await sleep(quietMs);
    this.#settle();
    await outbox.waitUntilIdle(quietMs);
    if (!this.#isEnded) await loadCalls();
  }

  #settle(): void {
    if (!this.#isSettled) this.#deps.settle();
    this.#isSettled = true;
  }
}
