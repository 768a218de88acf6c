import type { AgentApp } from "@agentclientprotocol/sdk/unstable";
import { authenticate, disableProvider, listProviders, logOut, setProvider } from "./account.ts";
import { AuthStatus } from "./auth-status.ts";
import type { Connection } from "../connection.ts";

/** Signing in and out, and where requests to models go. */
export function accountHandlers(app: AgentApp, connection: Connection): void {
  const { account } = connection;
  const status = new AuthStatus(connection);
  app.onRequest("authenticate", ({ params }) => status.through(() => authenticate(account, params.methodId)));
  app.onRequest("logout", () => status.through(() => logOut(account)));
  app.onRequest("auth/status", () => status.answer());
  app.onRequest("providers/list", () => listProviders(account));
  app.onRequest("providers/set", ({ params }) => status.through(() => setProvider(account, params)));
  app.onRequest("providers/disable", ({ params }) =>
    status.through(() => disableProvider(account, params.providerId)),
  );
}
