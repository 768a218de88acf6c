import type { AgentApp } from "@agentclientprotocol/sdk/unstable";
import { authenticate, disableProvider, listProviders, logOut, setProvider } from "./account.ts";
import { AuthStatus } from "./auth-status.ts";
import type { AcpConnection } from "../connection.ts";

/** Handlers for authentication and providers. */
export function accountHandlers(app: AgentApp, connection: AcpConnection): void {
  const { account } = connection;
  const status = new AuthStatus(connection);
  app.onRequest("authenticate", ({ params }) =>
    status.runAndNotify(() => authenticate(account, params.methodId)),
  );
  app.onRequest("logout", () => status.runAndNotify(() => logOut(account)));
  app.onRequest("auth/status", () => status.get());
  app.onRequest("providers/list", () => listProviders(account));
  app.onRequest("providers/set", ({ params }) => status.runAndNotify(() => setProvider(account, params)));
  app.onRequest("providers/disable", ({ params }) =>
    status.runAndNotify(() => disableProvider(account, params.providerId)),
  );
}
