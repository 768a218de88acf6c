import { McpConnection, type ConnectionDeps, type FirstRequest } from "./connection.ts";
import type { Transport } from "@modelcontextprotocol/client";
import { errorFields } from "../../base/error-fields.ts";
import { messageOf } from "../../base/errors.ts";
import type { MessageTooLongError } from "./bounded-fetch.ts";
import type { ConfineProgram } from "../../sandbox/project-sandbox.ts";
import type { PipedProcesses } from "../../workspace/process/piped-process.ts";
import type { JsonStore } from "../../storage/json/json-store.ts";
import { type Era, EraStore } from "./era-store.ts";
import { getCause, ConnectError, isOtherEra, isProbeTimeout, toConnectError } from "./failures.ts";
import { maySpeakSse, type RemoteKind, remoteKinds, remoteTransport } from "./remote-transport.ts";
import { shouldOfferRoots } from "./offered-roots.ts";
import type { LocalServer, RemoteServer, ServerSettings } from "../server-settings.ts";
import type { OAuthFetch } from "../oauth/oauth-fetch.ts";
import { StdioTransport } from "./stdio-transport.ts";

export interface ConnectDeps {
  readonly connection: ConnectionDeps;
  readonly processes: PipedProcesses;
  readonly confine: ConfineProgram;
  readonly signIn?: OAuthFetch | undefined;
  onNoise: (line: string) => void;
  /** Where the generations of servers are stored. */
  readonly files: () => Promise<JsonStore>;
}

/** Connects to the server. Throws {@link ConnectError}. */
export async function connect(
  settings: ServerSettings,
  deps: ConnectDeps,
  signal: AbortSignal,
): Promise<McpConnection> {
  const offersRoots = await shouldOfferRoots(settings, getWorkingFolder(settings, deps));
  const create = (transport: Transport) => new McpConnection(transport, deps.connection, offersRoots);
  const memory = new EraMemory(settings, deps);
  const known = await memory.load();
  const connection =
    settings.type === "local"
      ? await connectLocal(known, (first) => openLocal(settings, first, deps, create, signal))
      : await connectRemote(remoteKinds(settings), known, (kind, first) =>
          openRemote(settings, kind, first, deps, create, signal),
        );
  await memory.note(connection);
  return connection;
}

/**
 * Begins with `initialize`, which every program of the legacy generation knows: some end or never answer on
 * `server/discover`, and some start their own work. Programs that reject it are asked with `server/discover`.
 */
async function connectLocal(
  known: Era | undefined,
  open: (first: FirstRequest) => Promise<McpConnection>,
): Promise<McpConnection> {
  try {
    return await open(known === "modern" ? "discover" : "initialize");
  } catch (error) {
    if (known === "modern") return open("initialize");
    if (!isOtherEra(getCause(error))) throw error;
    return open("discover");
  }
}

/** Begins with `server/discover`, unless the server is known to be of the legacy generation. */
async function connectRemote(
  [kind, other]: readonly RemoteKind[],
  known: Era | undefined,
  open: (kind: RemoteKind, first: FirstRequest) => Promise<McpConnection>,
): Promise<McpConnection> {
  if (kind === undefined) throw new Error("no transport to reach the server");
  if (kind === "sse") return open(kind, "initialize");
  try {
    return await connectHttp(known, (first) => open(kind, first));
  } catch (error) {
    if (other === undefined || !maySpeakSse(getCause(error))) throw error;
    return open(other, "initialize");
  }
}

async function connectHttp(
  known: Era | undefined,
  open: (first: FirstRequest) => Promise<McpConnection>,
): Promise<McpConnection> {
  try {
    return await open(known === "legacy" ? "initialize" : "discover");
  } catch (error) {
    if (known === "legacy" && isOtherEra(getCause(error))) return open("discover");
    if (known === "legacy") throw error;
    if (isProbeTimeout(getCause(error))) return open("initialize");
    if (!(error instanceof ConnectError) || error.failure.kind !== "unauthorized") throw error;
    return openWithoutToken(error, () => open("initialize"));
  }
}

/** Some servers answer `initialize` without a token and require one later. Others still need a token. */
async function openWithoutToken(
  refusal: ConnectError,
  open: () => Promise<McpConnection>,
): Promise<McpConnection> {
  try {
    return await open();
  } catch {
    throw refusal;
  }
}

/** The generation of one server, between connections. Failures of the store only cost a request. */
class EraMemory {
  readonly #settings: ServerSettings;
  readonly #deps: ConnectDeps;
  readonly #store: EraStore;

  constructor(settings: ServerSettings, deps: ConnectDeps) {
    this.#settings = settings;
    this.#deps = deps;
    this.#store = new EraStore(deps.files);
  }

  load(): Promise<Era | undefined> {
    return this.#try(() => this.#store.load(this.#settings));
  }

  /** Stores what the next connection needs: programs are assumed to be legacy, addresses modern. */
  async note({ era, serverVersion }: McpConnection): Promise<void> {
    const isExpected = era === (this.#settings.type === "local" ? "legacy" : "modern");
    await this.#try(() =>
      isExpected ? this.#store.forget(this.#settings) : this.#store.save(this.#settings, era, serverVersion),
    );
  }

  async #try<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.#deps.connection.log.warn("MCP protocol generation not stored", errorFields(error));
      return undefined;
    }
  }
}

function getWorkingFolder(settings: ServerSettings, { connection }: ConnectDeps): string {
  const [first = "/"] = connection.roots;
  return settings.type === "local" ? (settings.cwd ?? first) : first;
}

type CreateConnection = (transport: Transport) => McpConnection;

async function openLocal(
  settings: LocalServer,
  first: FirstRequest,
  deps: ConnectDeps,
  create: CreateConnection,
  signal: AbortSignal,
) {
  const { processes, onNoise, confine: confineProgram } = deps;
  const { command, args, environment, sandbox } = settings;
  const cwd = getWorkingFolder(settings, deps);
  const confine = sandbox
    ? (argv: readonly string[]) => confineProgram(argv, { sandbox, start: cwd })
    : undefined;
  const program = { command, args, cwd, env: environment, confine };
  const transport = new StdioTransport(program, { processes, onNoise });
  const connection = create(transport);
  try {
    await connection.open(first, signal);
    return connection;
  } catch (error) {
    await connection.end();
    if (transport.isEchoed) throw new ConnectError({ kind: "failed", reason: echoReason, isPassing: false });
    const serverText = transport.errorTail === "" ? "" : `; it wrote: ${transport.errorTail.slice(-500)}`;
    throw toConnectError(error, deps.connection.timeoutMs, serverText);
  }
}

const echoReason =
  "its command runs in a terminal, which repeats its input and cuts long lines. Start it without one: with ssh, use -T instead of -t";

async function openRemote(
  settings: RemoteServer,
  kind: RemoteKind,
  first: FirstRequest,
  { signIn, connection: { timeoutMs } }: ConnectDeps,
  create: CreateConnection,
  signal: AbortSignal,
): Promise<McpConnection> {
  const onTooLong = (error: MessageTooLongError) => connection.break(error);
  const onSignInNeeded = () => connection.refuse();
  const transport = createTransport(settings, kind, { signIn, onTooLong, onSignInNeeded });
  const connection = create(transport);
  try {
    await connection.open(first, signal);
    return connection;
  } catch (error) {
    await connection.end();
    if (connection.isRefused) throw new ConnectError({ kind: "unauthorized" });
    throw toConnectError(error, timeoutMs, "");
  }
}

function createTransport(...args: Parameters<typeof remoteTransport>): Transport {
  try {
    return remoteTransport(...args);
  } catch (error) {
    throw new ConnectError({ kind: "failed", reason: messageOf(error), isPassing: false });
  }
}
