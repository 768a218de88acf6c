import { McpConnection, type ConnectionDeps } from "./connection.ts";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { messageOf } from "../../base/errors.ts";
import type { MessageTooLongError } from "./bounded-fetch.ts";
import type { PipedProcesses } from "../../workspace/process/piped-process.ts";
import { getCause, ConnectError, toConnectError } from "./failures.ts";
import { maySpeakSse, type RemoteKind, remoteKinds, remoteTransport } from "./remote-transport.ts";
import { shouldOfferRoots } from "./offered-roots.ts";
import type { LocalServer, RemoteServer, ServerSettings } from "../server-settings.ts";
import type { OAuthFetch } from "../oauth/oauth-fetch.ts";
import { StdioTransport } from "./stdio-transport.ts";

export interface ConnectDeps {
  readonly connection: ConnectionDeps;
  readonly processes: PipedProcesses;
  readonly signIn?: OAuthFetch | undefined;
  onNoise: (line: string) => void;
}

/** Connects and lists the capabilities of the server. Throws {@link ConnectError}. */
export async function connect(
  settings: ServerSettings,
  deps: ConnectDeps,
  signal: AbortSignal,
): Promise<McpConnection> {
  const offersRoots = await shouldOfferRoots(settings, getWorkingFolder(settings, deps));
  const create = (transport: Transport) => new McpConnection(transport, deps.connection, offersRoots);
  if (settings.type === "local") return connectLocal(settings, deps, create, signal);
  const [first, ...others] = remoteKinds(settings);
  if (first === undefined) throw new Error("no way to reach a server");
  try {
    return await connectRemote(settings, first, deps, create, signal);
  } catch (error) {
    const [second] = others;
    if (second === undefined || !maySpeakSse(getCause(error))) throw error;
    return connectRemote(settings, second, deps, create, signal);
  }
}

function getWorkingFolder(settings: ServerSettings, { connection }: ConnectDeps): string {
  const [first = "/"] = connection.roots;
  return settings.type === "local" ? (settings.cwd ?? first) : first;
}

type CreateConnection = (transport: Transport) => McpConnection;

async function connectLocal(
  settings: LocalServer,
  deps: ConnectDeps,
  create: CreateConnection,
  signal: AbortSignal,
) {
  const { processes, onNoise } = deps;
  const { command, args, environment } = settings;
  const cwd = getWorkingFolder(settings, deps);
  const transport = new StdioTransport({ command, args, cwd, env: environment }, { processes, onNoise });
  const connection = create(transport);
  try {
    await connection.open(signal);
    return connection;
  } catch (error) {
    await connection.end();
    const serverText = transport.errorTail === "" ? "" : `; it wrote: ${transport.errorTail.slice(-500)}`;
    throw toConnectError(error, deps.connection.timeoutMs, serverText);
  }
}

async function connectRemote(
  settings: RemoteServer,
  kind: RemoteKind,
  { signIn, connection: { timeoutMs } }: ConnectDeps,
  create: CreateConnection,
  signal: AbortSignal,
): Promise<McpConnection> {
  const onTooLong = (error: MessageTooLongError) => connection.break(error);
  const onSignInNeeded = () => connection.refuse();
  const transport = openRemote(settings, kind, { signIn, onTooLong, onSignInNeeded });
  const connection = create(transport);
  try {
    await connection.open(signal);
    return connection;
  } catch (error) {
    await connection.end();
    if (connection.isRefused) throw new ConnectError({ kind: "unauthorized" });
    throw toConnectError(error, timeoutMs, "");
  }
}

function openRemote(...args: Parameters<typeof remoteTransport>): Transport {
  try {
    return remoteTransport(...args);
  } catch (error) {
    throw new ConnectError({ kind: "failed", reason: messageOf(error), isPassing: false });
  }
}
