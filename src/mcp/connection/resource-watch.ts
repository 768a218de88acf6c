import type { Client } from "@modelcontextprotocol/client";
import { z } from "zod";
import { CallClock } from "./call-clock.ts";
import { ChangeStream } from "./change-stream.ts";
import type { Era } from "./era-store.ts";

interface Watching {
  readonly era: Era;
  request(
    method: string,
    params: Record<string, unknown>,
    answer: z.ZodType,
    options: { readonly clock: CallClock },
  ): Promise<unknown>;
}

/** Subscriptions to resources, on a stream (modern generation) or by request (legacy). Failures are ignored. */
export class ResourceWatch {
  readonly #connection: Watching;
  readonly #client: Pick<Client, "listen">;
  readonly #timeoutMs: number;
  #uris: ReadonlySet<string> = new Set();
  #stream: ChangeStream | undefined;

  constructor(connection: Watching, client: Pick<Client, "listen">, timeoutMs: number) {
    this.#connection = connection;
    this.#client = client;
    this.#timeoutMs = timeoutMs;
  }

  /** Watches exactly these resources. */
  set(uris: readonly string[]): void {
    const before = this.#uris;
    this.#uris = new Set(uris);
    const added = uris.filter((uri) => !before.has(uri));
    if (this.#connection.era === "modern") {
      if (added.length > 0) this.#openStream(uris);
      return;
    }
    for (const uri of added) void this.#request("resources/subscribe", uri);
    for (const uri of before) if (!this.#uris.has(uri)) void this.#request("resources/unsubscribe", uri);
  }

  close(): void {
    this.#stream?.close();
  }

  /** Closes the old stream when the new one is open, so that no change is missed. */
  #openStream(uris: readonly string[]): void {
    const old = this.#stream;
    const stream = new ChangeStream(this.#client, { resourceSubscriptions: [...uris] }, () => {});
    this.#stream = stream;
    void stream.opened.then(() => old?.close());
  }

  async #request(method: string, uri: string): Promise<void> {
    const clock = new CallClock(this.#timeoutMs);
    await this.#connection.request(method, { uri }, z.unknown(), { clock });
    clock.end();
  }
}
