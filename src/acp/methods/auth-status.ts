import type { AuthStatusResponse } from "@agentclientprotocol/sdk/unstable";
import type { Account } from "./account.ts";
import type { Peer } from "../client/requester.ts";

/** Returns the authentication status and notifies the client when it changes. */
export class AuthStatus {
  readonly #connection: { account: Account; peer: Peer };
  /** Undefined until the client has asked; such a client may not support the notification. */
  #lastSent: string | undefined;

  constructor(connection: { account: Account; peer: Peer }) {
    this.#connection = connection;
  }

  async get(): Promise<AuthStatusResponse> {
    const status = await loadStatus(this.#connection.account);
    this.#lastSent = JSON.stringify(status);
    return status;
  }

  /** Runs a change and notifies the client if the status has changed. */
  async runAndNotify<T>(change: () => Promise<T>): Promise<T> {
    try {
      return await change();
    } finally {
      await this.#notifyIfChanged();
    }
  }

  async #notifyIfChanged(): Promise<void> {
    const before = this.#lastSent;
    if (before === undefined) return;
    const status = await this.get();
    if (this.#lastSent !== before) this.#connection.peer.requests.authStatus(status);
  }
}

async function loadStatus(account: Account): Promise<AuthStatusResponse> {
  const [problem, providers] = await Promise.all([account.missingModel(), account.providers()]);
  return {
    state: problem === undefined ? "authenticated" : "unauthenticated",
    accounts: providers.map(({ name, keyFrom }) => ({
      label: keyFrom === undefined ? name : `${name} (key from ${keyFrom})`,
    })),
  };
}
