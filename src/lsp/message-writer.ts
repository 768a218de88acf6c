import { type Message, StreamMessageWriter } from "vscode-jsonrpc/node";
import { type Deferred, deferred } from "../base/async.ts";

/** While a server leaves so many messages unread, answers to its questions among them, nothing more of it is read. */
const unreadMessages = 1_000;

/** Messages to a language server, which says while too many of them wait to be read. */
export class CountingMessageWriter extends StreamMessageWriter {
  #waiting = 0;
  #full: Deferred<void> | undefined;

  /** Resolves when the server has read enough; undefined while it does. */
  get room(): Promise<void> | undefined {
    return this.#full?.promise;
  }

  override async write(message: Message): Promise<void> {
    if (++this.#waiting > unreadMessages) this.#full ??= deferred<void>();
    try {
      await super.write(message);
    } finally {
      this.#waiting--;
      if (this.#waiting <= unreadMessages) this.#makeRoom();
    }
  }

  #makeRoom(): void {
    this.#full?.resolve();
    this.#full = undefined;
  }
}
