import { SessionStore } from "./session-store.ts";

/** Opens the store on first use. */
export class LazyStore {
  readonly #options: Parameters<typeof SessionStore.open>[0];
  #store: Promise<SessionStore> | undefined;

  constructor(options: Parameters<typeof SessionStore.open>[0]) {
    this.#options = options;
  }

  /** Returns the store. After a failure (a full disk) the next call tries again. */
  get(): Promise<SessionStore> {
    this.#store ??= SessionStore.open(this.#options).catch((error: unknown) => {
      this.#store = undefined;
      throw error;
    });
    return this.#store;
  }

  /** Closes the store. Call it when all sessions are closed. */
  async close(): Promise<void> {
    // A failed open was already reported to the caller of `get`.
    const store = await this.#store?.catch(() => undefined);
    await store?.close();
  }
}
