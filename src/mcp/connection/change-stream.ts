import type { Client, ServerCapabilities, SubscriptionFilter } from "@modelcontextprotocol/client";
import { deferred, sleep } from "../../base/async.ts";

/** Delays before the stream is opened again. After the last one, the lists are refreshed with each connection only. */
const retryDelaysMs: readonly number[] = [1_000, 5_000, 30_000, 60_000, 300_000];
/** A stream that lasted this long resets the delays. */
const goodAfterMs = 60_000;

/** Stream of a server of the modern generation, on which it reports changes of its lists or resources. */
export class ChangeStream {
  readonly #client: Pick<Client, "listen">;
  readonly #filter: SubscriptionFilter;
  readonly #onReopened: () => void;
  readonly #closing = new AbortController();
  readonly #opened = deferred<void>();

  /** `onReopened` is called when changes may have been missed. */
  constructor(client: Pick<Client, "listen">, filter: SubscriptionFilter, onReopened: () => void) {
    this.#client = client;
    this.#filter = filter;
    this.#onReopened = onReopened;
    if (Object.keys(this.#filter).length > 0) void this.#keepOpen();
  }

  /** Resolves when it was opened, or could not be. */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  close(): void {
    this.#closing.abort();
  }

  /** Never rejects. */
  async #keepOpen(): Promise<void> {
    const { signal } = this.#closing;
    let retries = 0;
    let delayMs: number | undefined = 0;
    while (delayMs !== undefined && !signal.aborted) {
      const openedMs = performance.now();
      await this.#runOnce(retries > 0);
      if (performance.now() - openedMs >= goodAfterMs) retries = 0;
      delayMs = retryDelaysMs[retries];
      retries++;
      if (delayMs !== undefined) await sleep(delayMs, signal);
    }
  }

  /** Resolves when the stream has ended. */
  async #runOnce(isLater: boolean): Promise<void> {
    try {
      const subscription = await this.#client.listen(this.#filter, { signal: this.#closing.signal });
      // Changes between two streams were not reported.
      if (isLater) this.#onReopened();
      this.#opened.resolve();
      await subscription.closed;
    } catch {
      // The server may not support it, or the connection is lost; the connection reports its own failure.
      this.#opened.resolve();
    }
  }
}

/** Returns the filter for changes of the lists. */
export function getListFilter({ tools, prompts, resources }: ServerCapabilities): SubscriptionFilter {
  return {
    ...(tools?.listChanged === true && { toolsListChanged: true }),
    ...(prompts?.listChanged === true && { promptsListChanged: true }),
    ...(resources?.listChanged === true && { resourcesListChanged: true }),
  };
}
