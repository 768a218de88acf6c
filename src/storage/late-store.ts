import { SessionStore } from "./session-store.ts";

/** Opens the store when it is first asked for. One that could not be opened (a full disk) is tried again with the next request. */
export function lateStore(options: Parameters<typeof SessionStore.open>[0]): () => Promise<SessionStore> {
  let store: Promise<SessionStore> | undefined;
  const open = () =>
    SessionStore.open(options).catch((error: unknown) => {
      store = undefined;
      throw error;
    });
  return () => (store ??= open());
}
