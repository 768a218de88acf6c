import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { deferred } from "../../base/async.ts";

/** A call whose work continues after its turn. */
interface BackgroundCall {
  readonly title: string;
  readonly isTask: boolean;
}

/** The work in the background of a run's session, as its updates report it. */
export class BackgroundWork {
  /** The open calls, by id. */
  readonly #open = new Map<string, BackgroundCall>();
  readonly #running = new Map<string, BackgroundCall>();
  #changed = deferred<void>();

  /** Titles of the running work. */
  get titles(): readonly string[] {
    return [...this.#running.values()].map(({ title }) => title);
  }

  /** Titles of the running tasks. */
  get tasks(): readonly string[] {
    return [...this.#running.values()].filter(({ isTask }) => isTask).map(({ title }) => title);
  }

  note(update: SessionUpdate): void {
    if (update.sessionUpdate !== "tool_call" && update.sessionUpdate !== "tool_call_update") return;
    const { toolCallId, status } = update;
    const before = this.#open.get(toolCallId);
    const call = {
      title: update.title || (before?.title ?? toolCallId),
      isTask: before?.isTask ?? update._meta?.["tool_name"] === "task",
    };
    this.#open.set(toolCallId, call);
    if (update._meta?.["background"] !== undefined) this.#running.set(toolCallId, call);
    if (status !== "completed" && status !== "failed") return;
    this.#open.delete(toolCallId);
    if (!this.#running.delete(toolCallId)) return;
    this.#changed.resolve();
    this.#changed = deferred();
  }

  /** Resolves when no task runs. */
  async waitForTasks(): Promise<void> {
    while (this.tasks.length > 0) await this.#changed.promise;
  }
}
