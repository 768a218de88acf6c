import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { RemoteServer } from "./server-settings.ts";

/** How requests to remote servers are made in the person's name. */
export interface SignIn {
  /** A fetch for this server over the one that is given. */
  fetchFor(server: RemoteServer, fetch: FetchLike): FetchLike;
  /** Whether an error of that fetch says that the person must authorize first. */
  isNeeded(error: unknown): boolean;
}
