import type { SetProviderRequest } from "@agentclientprotocol/sdk/unstable";
import type { AcpConnection } from "../connection.ts";
import {
  type Account,
  authenticate,
  disableProvider,
  listProviders,
  logOut,
  setProvider,
} from "./account.ts";
import { AuthStatus } from "./auth-status.ts";

/** Requests about authentication and providers. The client is notified if they change its status. */
export class AccountRequests {
  readonly #account: Account;
  readonly #status: AuthStatus;

  constructor(connection: AcpConnection) {
    this.#account = connection.account;
    this.#status = new AuthStatus(connection);
  }

  status() {
    return this.#status.get();
  }

  authenticate({ methodId }: { methodId: string }) {
    return this.#status.runAndNotify(() => authenticate(this.#account, methodId));
  }

  logOut() {
    return this.#status.runAndNotify(() => logOut(this.#account));
  }

  listProviders() {
    return listProviders(this.#account);
  }

  setProvider(params: SetProviderRequest) {
    return this.#status.runAndNotify(() => setProvider(this.#account, params));
  }

  disableProvider({ providerId }: { providerId: string }) {
    return this.#status.runAndNotify(() => disableProvider(this.#account, providerId));
  }
}
