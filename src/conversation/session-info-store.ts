import type { SessionInfo } from "../message/message.ts";
import type { SessionWriter } from "../storage/session-store.ts";

/** The info of a session, without its messages. */
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

  /** Changes and stores the info, and sets its update time. */
  async save(change: Partial<SessionInfo>): Promise<void> {
    this.#change(change);
    this.#writer.saveInfo(this.#info);
  }

  /** Like {@link save} for changes of each step; reaches the session's file a moment later. */
  note(change: Partial<SessionInfo>): void {
    this.#change(change);
    this.#writer.noteInfo(this.#info);
  }

  /** Stores the start of a compaction, or that it ended. */
  async noteCompacting(isRunning: boolean): Promise<void> {
    const { compacting: _, ...time } = this.#info.time;
    this.#info = { ...this.#info, time: isRunning ? { ...time, compacting: Date.now() } : time };
    this.#writer.saveInfo(this.#info);
  }

  #change(change: Partial<SessionInfo>): void {
    this.#info = { ...this.#info, ...change, time: { ...this.#info.time, updated: Date.now() } };
  }
}
