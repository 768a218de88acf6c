import type { McpServer } from "./server.ts";

/** A resource that changed after it was read. */
export interface ChangedResource {
  readonly server: string;
  readonly uri: string;
}

interface ReadState {
  readonly unchanged: Set<string>;
  readonly changed: Set<string>;
  stop(): void;
}

/** The resources that a session has read, and which of them have changed since. */
export class ReadResources {
  readonly #servers = new Map<McpServer, ReadState>();

  /** Watches the resource from now on. */
  noteRead(server: McpServer, uri: string): void {
    const state = this.#servers.get(server) ?? this.#begin(server);
    state.changed.delete(uri);
    state.unchanged.add(uri);
    server.watch(uri);
  }

  /** Returns each changed resource once until it is read again. */
  takeChanged(): ChangedResource[] {
    return [...this.#servers].flatMap(([{ settings }, { changed }]) => {
      const uris = [...changed];
      changed.clear();
      return uris.map((uri) => ({ server: settings.name, uri }));
    });
  }

  forget(server: McpServer): void {
    this.#servers.get(server)?.stop();
    this.#servers.delete(server);
  }

  #begin(server: McpServer): ReadState {
    const unchanged = new Set<string>();
    const changed = new Set<string>();
    const stop = server.onResource((uri) => {
      if (unchanged.delete(uri)) changed.add(uri);
    });
    const state = { unchanged, changed, stop };
    this.#servers.set(server, state);
    return state;
  }
}
