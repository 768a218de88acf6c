import type { AuthStatusResponse } from "@agentclientprotocol/sdk/unstable";
import type { Account } from "./account.ts";
import type { Peer } from "../connection.ts";

/** Whether the person is signed in, for a client that wants to know: it is told again when that changes. */
export class AuthStatus {
  readonly #connection: { account: Account; peer: Peer | undefined };
  /** Undefined for a client that never asked, which may not know the update. */
  #lastSent: string | undefined;

  constructor(connection: { account: Account; peer: Peer | undefined }) {
    this.#connection = connection;
  }

  async get(): Promise<AuthStatusResponse> {
    const status = await loadStatus(this.#connection.account);
    this.#lastSent = JSON.stringify(status);
    return status;
  }

  /** Does what may change it, and tells the client if it did. */
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
    if (this.#lastSent !== before) await this.#connection.peer?.requests.authStatus(status);
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
