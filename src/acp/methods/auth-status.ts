import type { AuthStatusResponse } from "@agentclientprotocol/sdk/unstable";
import type { Account } from "./account.ts";
import type { Peer } from "../connection.ts";

/** Whether the person is signed in, for a client that wants to know: it is told again when that changes. */
export class AuthStatus {
  readonly #connection: { account: Account; peer: Peer | undefined };
  /** Undefined for a client that never asked, which may not know the update. */
  #told: string | undefined;

  constructor(connection: { account: Account; peer: Peer | undefined }) {
    this.#connection = connection;
  }

  async answer(): Promise<AuthStatusResponse> {
    const status = await statusOf(this.#connection.account);
    this.#told = JSON.stringify(status);
    return status;
  }

  /** Does what may change it, and tells the client if it did. */
  async through<T>(change: () => Promise<T>): Promise<T> {
    try {
      return await change();
    } finally {
      await this.#tellIfChanged();
    }
  }

  async #tellIfChanged(): Promise<void> {
    const before = this.#told;
    if (before === undefined) return;
    const status = await this.answer();
    if (this.#told !== before) await this.#connection.peer?.asker.authStatus(status);
  }
}

async function statusOf(account: Account): Promise<AuthStatusResponse> {
  const [problem, providers] = await Promise.all([account.missingModel(), account.providers()]);
  return {
    state: problem === undefined ? "authenticated" : "unauthenticated",
    accounts: providers.map(({ name, keyFrom }) => ({
      label: keyFrom === undefined ? name : `${name} (key from ${keyFrom})`,
    })),
  };
}
