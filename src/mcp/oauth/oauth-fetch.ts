import type { FetchLike } from "@modelcontextprotocol/client";
import { once } from "../../base/async.ts";
import { AuthorizationNeeded, type Challenge } from "./oauth-challenge.ts";
import type { AuthorizeOutcome, ShowAddress } from "./oauth-flow.ts";
import type { AuthorizationStore } from "./oauth-store.ts";
import type { RemoteServer } from "../server-settings.ts";

/**
 * Sends authorized requests to remote servers: with stored tokens, or after asking the user. The OAuth code is large and
 * loads with the first request.
 */
export class OAuthFetch {
  readonly #store: AuthorizationStore;
  /** The last challenge of each server, by address. */
  readonly #challenges = new Map<string, Challenge>();
  readonly #flows = new Map<string, AbortController>();

  constructor(store: AuthorizationStore) {
    this.#store = store;
  }

  /** Wraps a fetch for this server. Rejects with an error that {@link isNeeded} recognizes. */
  fetchFor(server: RemoteServer, fetch: FetchLike): FetchLike {
    const signedIn = once(async () => {
      const { ServerTokens } = await import("./oauth-tokens.ts");
      return new ServerTokens(server, { store: this.#store, fetch }).fetch;
    });
    return async (url, init) => {
      try {
        return await (
          await signedIn()
        )(url, init);
      } catch (error) {
        if (error instanceof AuthorizationNeeded) this.#challenges.set(server.url, error.challenge);
        throw error;
      }
    };
  }

  /** Returns whether an error of that fetch means that the user must authorize first. */
  isNeeded(error: unknown): boolean {
    return error instanceof AuthorizationNeeded;
  }

  /** Asks the user to authorize, cancelling a running attempt for the same address. Never rejects. */
  async authorize(server: RemoteServer, show: ShowAddress, signal: AbortSignal): Promise<AuthorizeOutcome> {
    const { authorize } = await import("./oauth-flow.ts");
    const flow = new AbortController();
    this.#flows.get(server.url)?.abort();
    this.#flows.set(server.url, flow);
    const challenge = this.#challenges.get(server.url);
    const either = AbortSignal.any([signal, flow.signal]);
    const outcome = await authorize(server, { store: this.#store, fetch, show }, either, challenge);
    if (this.#flows.get(server.url) === flow) this.#flows.delete(server.url);
    if (outcome.outcome === "authorized") this.#challenges.delete(server.url);
    return outcome;
  }
}
