import { SessionStore } from "./session-store.ts";

/** A store that is opened when it is first asked for. */
export class LazyStore {
  readonly #options: Parameters<typeof SessionStore.open>[0];
  #store: Promise<SessionStore> | undefined;

  constructor(options: Parameters<typeof SessionStore.open>[0]) {
    this.#options = options;
  }

  /** One that could not be opened (a full disk) is tried again with the next request. */
  get(): Promise<SessionStore> {
    this.#store ??= SessionStore.open(this.#options).catch((error: unknown) => {
      this.#store = undefined;
      throw error;
    });
    return this.#store;
  }

  /** For the program's end, when all sessions are closed. */
  async close(): Promise<void> {
    // What could not be opened was told to whoever asked for it.
    const store = await this.#store?.catch(() => undefined);
    await store?.close();
  }
}
