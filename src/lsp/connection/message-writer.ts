import { type Message, StreamMessageWriter } from "vscode-jsonrpc/node";
import { type Deferred, deferred } from "../../base/async.ts";

/** Reading from a server pauses while it leaves this many messages unread. */
const unreadMessagesLimit = 1_000;

/** Counts unread messages to a language server and provides backpressure. */
export class CountingMessageWriter extends StreamMessageWriter {
  #waiting = 0;
  #drain: Deferred<void> | undefined;

  /** Resolves when the server has read enough; undefined if it already has. */
  get drained(): Promise<void> | undefined {
    return this.#drain?.promise;
  }

  override async write(message: Message): Promise<void> {
    if (++this.#waiting > unreadMessagesLimit) this.#drain ??= deferred<void>();
    try {
      await super.write(message);
    } finally {
      this.#waiting--;
      if (this.#waiting <= unreadMessagesLimit) this.#resolveDrain();
    }
  }

  #resolveDrain(): void {
    this.#drain?.resolve();
    this.#drain = undefined;
  }
}
