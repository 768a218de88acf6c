import type { SessionInfo } from "../message/message.ts";
import type { SessionWriter } from "../storage/session-store.ts";

/** What is kept of a session beside its messages. */
export class SessionInfoStore {
  readonly #writer: Pick<SessionWriter, "saveInfo" | "noteInfo">;
  #info: SessionInfo;

  constructor(info: SessionInfo, writer: Pick<SessionWriter, "saveInfo" | "noteInfo">) {
    this.#info = info;
    this.#writer = writer;
  }

  get info(): SessionInfo {
    return this.#info;
  }

  /** Changes it here and on disk, as something that happened to the session now. */
  async save(change: Partial<SessionInfo>): Promise<void> {
    this.#change(change);
    this.#writer.saveInfo(this.#info);
  }

  /** The same for what changes with each step of a turn: others see it on disk a moment later. */
  note(change: Partial<SessionInfo>): void {
    this.#change(change);
    this.#writer.noteInfo(this.#info);
  }

  /** Stores since when a compaction runs, or that it ended. */
  async noteCompacting(isRunning: boolean): Promise<void> {
    const { compacting: _, ...time } = this.#info.time;
    this.#info = { ...this.#info, time: isRunning ? { ...time, compacting: Date.now() } : time };
    this.#writer.saveInfo(this.#info);
  }

  #change(change: Partial<SessionInfo>): void {
    this.#info = { ...this.#info, ...change, time: { ...this.#info.time, updated: Date.now() } };
  }
}
