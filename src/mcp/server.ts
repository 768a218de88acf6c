import type { z } from "zod";
import { orWhenAborted, sleep } from "../base/async.ts";
import { messageOf, UserError } from "../base/errors.ts";
import { sha256 } from "../base/text/hash.ts";
import type { Log } from "../base/log.ts";
import type { Secrets } from "../base/secrets/secrets.ts";
import { importModule } from "../base/import-module.ts";
import type { UserCapabilities } from "../message/elicitation.ts";
import type { JsonStore } from "../storage/json/json-store.ts";
import type { ConfineProgram } from "../sandbox/project-sandbox.ts";
import type { PipedProcesses } from "../workspace/process/piped-process.ts";
import type { ConnectDeps } from "./connection/connect.ts";
import type { McpConnection, RequestResult } from "./connection/connection.ts";
import type { ConnectFailure, RequestFailure } from "./connection/failures.ts";
import type { AuthorizeOutcome, ShowAddress } from "./oauth/oauth-flow.ts";
import { emptyCapabilities, type ServerCapabilities } from "./offers/offers.ts";
import { ServerQuestions, type ServerUser } from "./questions/server-questions.ts";
import type { ServerSettings } from "./server-settings.ts";
import { ServerLog } from "./connection/server-log.ts";
import type { OAuthFetch } from "./oauth/oauth-fetch.ts";

/** Connection status of a server. */
export type ServerStatus =
  /** Not started yet. */
  | { readonly state: "waiting" }
  | { readonly state: "connecting" }
  | { readonly state: "connected" }
  /** `isPassing`: the connection is retried automatically. */
  | { readonly state: "failed"; readonly reason: string; readonly isPassing: boolean }
  | { readonly state: "needs authorization" }
  | { readonly state: "ended" };

export interface ServerDeps {
  readonly version: string;
  readonly processes: PipedProcesses;
  readonly roots: readonly string[];
  /** Runs the server in the sandbox, if its entry says so. */
  readonly confine: ConfineProgram;
  readonly capabilities: UserCapabilities;
  readonly log: Log;
  /** Redacts known keys in a server's error messages. */
  readonly secrets: Pick<Secrets, "redact">;
  readonly signIn?: OAuthFetch | undefined;
  /** Where the servers' generations of the protocol are stored. */
  readonly files: () => Promise<JsonStore>;
  /** Called when a server completes an address that the user visited. Must not throw. */
  onVisited?: ((elicitationId: string) => void) | undefined;
}

const connectTimeoutMs = 30_000;
const callTimeoutMs = 120_000;
/** Delays before reconnecting. After the last one, only a call reconnects. */
const retryDelaysMs: readonly number[] = [1_000, 2_000, 5_000, 15_000, 30_000];
/** A connection that lasted this long resets the delays. */
const goodAfterMs = 30_000;
/** First and maximum delay between refreshes of lists that keep changing. */
const refreshEveryMs = 1_000;
const slowestRefreshMs = 30_000;
/** Maximum number of watched resources. The oldest are dropped. */
const watchedLimit = 100;

/** An MCP server: keeps its connection and caches its capabilities. Shared by the sessions that use it. */
export class McpServer {
  readonly settings: ServerSettings;
  readonly #deps: ServerDeps;
  readonly #listeners = new Set<() => void>();
  readonly #resourceListeners = new Set<(uri: string) => void>();
  /** URIs of the resources that sessions read, the newest last. */
  readonly #watched = new Set<string>();
  readonly #ending = new AbortController();
  readonly #questions: ServerQuestions;
  readonly #serverLog: ServerLog;
  #status: ServerStatus = { state: "waiting" };
  #offers: ServerCapabilities = emptyCapabilities;
  #instructions = "";
  #connection: McpConnection | undefined;
  #connecting: Promise<void> | undefined;
  #startedMs = 0;
  #connectedMs = 0;
  #authorizing = 0;
  #retries = 0;
  #retrying: AbortController | undefined;
  #attempt = new AbortController();
  #isRefreshing = false;
  /** Number of list change notifications. */
  #changes = 0;

  constructor(settings: ServerSettings, deps: ServerDeps) {
    this.settings = settings;
    this.#deps = deps;
    this.#questions = new ServerQuestions(
      { name: settings.name, identity: `${settings.name}@${sha256(JSON.stringify(settings)).slice(0, 12)}` },
      this.callTimeoutMs,
      (id) => deps.onVisited?.(id),
    );
    this.#serverLog = new ServerLog(settings.name, deps.log);
  }

  get status(): ServerStatus {
    return this.#status;
  }

  /** Its capabilities, as of the last connection. */
  get offers(): ServerCapabilities {
    return this.#offers;
  }

  /** The negotiated version of the protocol; undefined while it is not connected. */
  get protocolVersion(): string | undefined {
    return this.#connection?.protocolVersion;
  }

  /** Its usage instructions, as of the last connection. */
  get instructions(): string {
    return this.#instructions;
  }

  /** Its log lines, newest last. */
  get logLines(): readonly string[] {
    return this.#serverLog.lines;
  }

  /** Number of stdout lines that were not messages. */
  get noise(): number {
    return this.#serverLog.noise;
  }

  /** Silence timeout of a call, in milliseconds. */
  get callTimeoutMs(): number {
    return this.settings.timeoutMs ?? callTimeoutMs;
  }

  get #connectTimeoutMs(): number {
    return this.settings.timeoutMs ?? connectTimeoutMs;
  }

  /** When it was first started, in `performance.now()` time. */
  get startedMs(): number {
    return this.#startedMs;
  }

  /** Calls the listener after each change of status or offers. Returns a function that removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls the listener with the URI of each watched resource that changes. Returns a function that removes it. */
  onResource(listener: (uri: string) => void): () => void {
    this.#resourceListeners.add(listener);
    return () => this.#resourceListeners.delete(listener);
  }

  /** Subscribes to changes of the resource, also on later connections. */
  watch(uri: string): void {
    this.#watched.delete(uri);
    this.#watched.add(uri);
    const [oldest] = this.#watched;
    if (this.#watched.size > watchedLimit && oldest !== undefined) this.#watched.delete(oldest);
    this.#connection?.watch([...this.#watched]);
  }

  /** Connects in the background. Does nothing if already started. */
  start(): void {
    if (this.#status.state !== "waiting") return;
    this.#startedMs = performance.now();
    void this.#connect();
  }

  /** Connects or reconnects now. Resolves when connected or failed; never rejects. */
  async reconnect(): Promise<void> {
    if (this.#ending.signal.aborted) return;
    this.#retrying?.abort();
    this.#retries = 0;
    this.#attempt.abort();
    await this.#connecting;
    const old = this.#connection;
    this.#connection = undefined;
    await old?.end();
    await this.#connect();
  }

  /** Whether an authorization is in progress. */
  get isAuthorizing(): boolean {
    return this.#authorizing > 0;
  }

  /** Asks the user to authorize it, then connects. Never rejects. */
  async authorize(show: ShowAddress, signal: AbortSignal): Promise<AuthorizeOutcome> {
    const { settings } = this;
    const { signIn } = this.#deps;
    if (settings.type === "local" || signIn === undefined)
      return { outcome: "failed", reason: "only remote servers are authorized" };
    this.#authorizing++;
    const either = AbortSignal.any([signal, this.#ending.signal]);
    // Some servers reject requests without authorization only when their tools are listed.
    this.start();
    await orWhenAborted(this.settled(), either, undefined);
    const outcome = await signIn.authorize(settings, show, either).finally(() => this.#authorizing--);
    if (outcome.outcome === "authorized") await this.reconnect();
    return outcome;
  }

  /** Resolves when it is no longer connecting. */
  async settled(): Promise<void> {
    await this.#connecting;
  }

  /** Sends a request for a user. Connects first if needed, and retries once if the connection drops. */
  async request<T>(
    method: string,
    params: Record<string, unknown>,
    answer: z.ZodType<T>,
    user: ServerUser,
  ): Promise<RequestResult<T>> {
    const first = await this.#requestOnce(method, params, answer, user);
    if (first.outcome === "answered" || user.signal.aborted) return first;
    const { failure } = first;
    if (failure.kind === "dropped" && !failure.isTask) return this.#requestOnce(method, params, answer, user);
    if (failure.kind !== "visit" || !(await this.#questions.visit(failure.visits, user))) return first;
    return this.#requestOnce(method, params, answer, user);
  }

  /** Closes it permanently. Resolves when its program has ended. */
  async end(): Promise<void> {
    this.#ending.abort();
    this.#retrying?.abort();
    this.#listeners.clear();
    this.#resourceListeners.clear();
    this.#status = { state: "ended" };
    await this.#connecting;
    await this.#connection?.end();
  }

  async #requestOnce<T>(
    method: string,
    params: Record<string, unknown>,
    answer: z.ZodType<T>,
    user: ServerUser,
  ): Promise<RequestResult<T>> {
    const connection = await this.#connected(user.signal);
    if (connection === undefined)
      return { outcome: "failed", failure: this.#explainUnavailable(user.signal) };
    const onProgress = user.onProgress?.bind(user);
    const tool =
      method === "tools/call" ? this.#offers.tools.find(({ name }) => name === params["name"]) : undefined;
    const requested = await this.#questions.during(user, async (clock) => {
      const options = { clock, tool, ...(onProgress && { onProgress }) };
      if (tool?.isTask !== true) return connection.request(method, params, answer, options);
      const { callAsTask } = await import("./connection/task-calls.ts");
      return callAsTask(connection, params, answer, options);
    });
    if (requested.outcome === "failed") this.#note(requested.failure, connection);
    return requested;
  }

  /** Updates the connection status after a failed request. */
  #note(failure: RequestFailure, connection: McpConnection): void {
    if (failure.kind === "dropped") this.#onConnectionLost(failure.reason, connection);
    if (failure.kind !== "unauthorized" || connection !== this.#connection) return;
    this.#connection = undefined;
    void connection.end();
    this.#set({ state: "needs authorization" });
  }

  async #connected(signal: AbortSignal): Promise<McpConnection | undefined> {
    if (this.#ending.signal.aborted) return undefined;
    if (this.#connection === undefined && this.#connecting === undefined) {
      this.#retrying?.abort();
      void this.#connect();
    }
    if (this.#connecting !== undefined) await orWhenAborted(this.#connecting, signal, undefined);
    return signal.aborted ? undefined : this.#connection;
  }

  #explainUnavailable(signal: AbortSignal) {
    if (signal.aborted) return { kind: "cancelled" } as const;
    if (this.#status.state === "needs authorization") return { kind: "unauthorized" } as const;
    const reason = this.#status.state === "failed" ? this.#status.reason : "it is not connected";
    return { kind: "failed", reason } as const;
  }

  #connect(): Promise<void> {
    this.#connecting ??= this.#tryToConnect().finally(() => {
      this.#connecting = undefined;
      this.#notify();
    });
    return this.#connecting;
  }

  /** Never rejects. */
  async #tryToConnect(): Promise<void> {
    if (this.#ending.signal.aborted) return;
    this.#set({ state: "connecting" });
    this.#attempt = new AbortController();
    const { signal } = this.#attempt;
    try {
      await this.#open(AbortSignal.any([signal, this.#ending.signal]));
    } catch (error) {
      if (!signal.aborted) await this.#failed(error);
    }
  }

  async #open(signal: AbortSignal): Promise<void> {
    // Loaded on demand: it is large.
    const [{ connect }, { ConnectError }] = await importModule(() =>
      Promise.all([import("./connection/connect.ts"), import("./connection/failures.ts")]),
    );
    const changes = this.#changes;
    const connection = await connect(this.settings, this.#connectionDeps(), signal);
    const offers = await this.#loadCapabilities(connection, signal);
    if (offers === undefined) return connection.end();
    if (!connection.isOpen)
      throw new ConnectError({ kind: "failed", reason: "it exited immediately", isPassing: true });
    this.#offers = offers;
    this.#instructions = connection.instructions;
    this.#connection = connection;
    this.#connectedMs = performance.now();
    this.#set({ state: "connected" });
    void connection.quieten();
    connection.listenForChanges();
    if (this.#watched.size > 0) connection.watch([...this.#watched]);
    // The lists may have changed during the request.
    if (this.#changes !== changes) void this.#refresh();
    return undefined;
  }

  /** Lists the capabilities. Returns undefined when aborted; closes the connection if listing fails. */
  async #loadCapabilities(
    connection: McpConnection,
    signal: AbortSignal,
  ): Promise<ServerCapabilities | undefined> {
    try {
      return await orWhenAborted(this.#listCapabilities(connection), signal, undefined);
    } catch (error) {
      await connection.end();
      throw error;
    }
  }

  async #failed(error: unknown): Promise<void> {
    const failure = await toConnectFailure(error);
    if (this.#ending.signal.aborted) return;
    if (failure.kind === "unauthorized") return this.#set({ state: "needs authorization" });
    const { name } = this.settings;
    this.#deps.log.warn("MCP connection failed", { server: name, reason: failure.reason });
    this.#setFailed(failure.reason, failure.isPassing);
  }

  #connectionDeps(): ConnectDeps {
    const { version, log, roots, capabilities, processes, confine, signIn, files } = this.#deps;
    return {
      connection: {
        version,
        log,
        roots,
        capabilities,
        timeoutMs: this.#connectTimeoutMs,
        onElicit: (params, signal) => this.#questions.ask(params, signal),
        onSample: (params, signal) => this.#questions.sample(params, signal),
        onElicited: (id) => this.#questions.onElicited(id),
        onClosed: (reason) => this.#onConnectionLost(reason, this.#connection),
        onListChanged: () => void this.#refresh(),
        onResourceChanged: (uri) => {
          if (this.#watched.has(uri)) for (const listener of this.#resourceListeners) listener(uri);
        },
        onLog: (level, text) => this.#serverLog.add(`${level}: ${text}`),
      },
      processes,
      confine,
      signIn,
      files,
      onNoise: (line) => this.#serverLog.addNoise(line),
    };
  }

  /** Keeps the capabilities: the next call or the next retry reconnects. */
  #onConnectionLost(reason: string, lost: McpConnection | undefined): void {
    if (lost === undefined || lost !== this.#connection || this.#ending.signal.aborted) return;
    this.#connection = undefined;
    void lost.end();
    if (performance.now() - this.#connectedMs >= goodAfterMs) this.#retries = 0;
    this.#deps.log.warn("MCP connection lost", { server: this.settings.name, reason });
    this.#setFailed(reason, true);
  }

  /** Schedules a reconnect if the failure may be temporary, up to the number of delays. */
  #setFailed(reason: string, mayPass: boolean): void {
    const isPassing = mayPass && this.#retries < retryDelaysMs.length;
    this.#set({ state: "failed", reason: this.#deps.secrets.redact(reason), isPassing });
    if (isPassing) this.#retryLater();
  }

  #retryLater(): void {
    const delayMs = retryDelaysMs[this.#retries] ?? 0;
    this.#retries++;
    const retrying = new AbortController();
    this.#retrying = retrying;
    void sleep(delayMs, retrying.signal).then(() => {
      if (!retrying.signal.aborted && this.#connection === undefined) void this.#connect();
    });
  }

  /** Refreshes changed lists, with growing delays while they keep changing. */
  async #refresh(): Promise<void> {
    this.#changes++;
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    let pauseMs = refreshEveryMs;
    for (let seen = 0; seen !== this.#changes && !this.#ending.signal.aborted;) {
      seen = this.#changes;
      await this.#setCapabilities();
      await sleep(pauseMs, this.#ending.signal);
      pauseMs = Math.min(pauseMs * 2, slowestRefreshMs);
    }
    this.#isRefreshing = false;
  }

  async #listCapabilities(connection: McpConnection): Promise<ServerCapabilities> {
    const { listOffers } = await importModule(() => import("./offers/list-offers.ts"));
    return listOffers(connection, this.#connectTimeoutMs);
  }

  async #setCapabilities(): Promise<void> {
    const connection = this.#connection;
    if (connection === undefined) return;
    try {
      const offers = await this.#listCapabilities(connection);
      if (connection === this.#connection) this.#offers = offers;
      this.#notify();
    } catch (error) {
      const failure = await toConnectFailure(error);
      if (failure.kind === "unauthorized") this.#note(failure, connection);
      else this.#onConnectionLost(failure.reason, connection);
    }
  }

  #set(status: ServerStatus): void {
    if (this.#ending.signal.aborted) return;
    this.#status = status;
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** Converts an error to a failure. A missing program file is not the server's fault and may be temporary. */
async function toConnectFailure(error: unknown): Promise<ConnectFailure> {
  if (error instanceof UserError) return { kind: "failed", reason: error.message, isPassing: true };
  const { ConnectError } = await import("./connection/failures.ts");
  return error instanceof ConnectError
    ? error.failure
    : { kind: "failed", reason: messageOf(error), isPassing: false };
}
