import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SseError } from "@modelcontextprotocol/sdk/client/sse.js";
import {
  StreamableHTTPClientTransport,
  StreamableHTTPError,
} from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  type ClientCapabilities,
  ElicitationCompleteNotificationSchema,
  type ElicitRequest,
  ElicitRequestSchema,
  type ElicitResult,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  McpError,
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ToolListChangedNotificationSchema,
  UrlElicitationRequiredError,
} from "@modelcontextprotocol/sdk/types.js";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { orAfter } from "../base/async.ts";
import { messageOf, UserError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ElicitationAbilities } from "../message/elicitation.ts";
import type { PipedProcesses } from "../workspace/piped-process.ts";
import { MessageTooLong } from "./bounded-fetch.ts";
import { CallClock } from "./call-clock.ts";
import type { Offers } from "./offers.ts";
import {
  type GivenList,
  offerLimit,
  parsePrompts,
  parseResources,
  parseTemplates,
  parseTools,
} from "./parse-offers.ts";
import { maySpeakSse, type RemoteKind, remoteKinds, remoteTransport } from "./remote-transport.ts";
import type { LocalServer, RemoteServer, ServerSettings } from "./server-settings.ts";
import type { SignIn } from "./sign-in.ts";
import { StdioTransport } from "./stdio-transport.ts";

/** Pages of one list that are asked for. */
const pagesLimit = 100;
/** How long ending a session at a remote server may take. */
const goodbyeMs = 500;
/** Characters of a server's own words about a failure. */
const errorLength = 1_000;
/** More than any request takes: the time-outs are our own, which stand still while a person is asked. */
const neverMs = 2 ** 31 - 1;

export interface ConnectionDeps {
  readonly version: string;
  readonly processes: PipedProcesses;
  readonly log: Log;
  /** Folders that the server is told of; absolute paths, the first is the session's. */
  readonly roots: readonly string[];
  readonly abilities: ElicitationAbilities;
  readonly timeoutMs: number;
  readonly signIn?: SignIn | undefined;
  onElicit(params: ElicitRequest["params"], signal: AbortSignal): Promise<ElicitResult>;
  onElicited(elicitationId: string): void;
  /** Told once when the connection is gone. */
  onClosed(reason: string): void;
  onListChanged(): void;
  onLog(level: string, text: string): void;
  onNoise(line: string): void;
}

/** Why there is no connection. */
export type ConnectFailure =
  | { readonly kind: "unauthorized" }
  /** `isPassing`: it may go better in a moment. */
  | { readonly kind: "failed"; readonly reason: string; readonly isPassing: boolean };

export class ConnectError extends Error {
  override readonly name = "ConnectError";
  readonly failure: ConnectFailure;
  constructor(failure: ConnectFailure) {
    super(failure.kind === "failed" ? failure.reason : "it wants to know who asks");
    this.failure = failure;
  }
}

/** What can go wrong with a request, told apart by what to do about it. */
export type RequestFailure =
  /** The connection is gone; the request may be tried on a new one. */
  | { readonly kind: "dropped"; readonly reason: string }
  | { readonly kind: "unauthorized" }
  | { readonly kind: "timed-out" }
  | { readonly kind: "cancelled" }
  /** The person has to visit these addresses first. */
  | { readonly kind: "visit"; readonly visits: readonly { id: string; url: string; message: string }[] }
  | { readonly kind: "failed"; readonly reason: string };

export type Requested<T> = { readonly outcome: "answered"; readonly value: T } | Failed;
type Failed = { readonly outcome: "failed"; readonly failure: RequestFailure };

export interface RequestOptions {
  readonly clock: CallClock;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

export interface Progress {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

/** Connects and learns what the server offers. Throws {@link ConnectError}. */
export async function connect(
  settings: ServerSettings,
  deps: ConnectionDeps,
  signal: AbortSignal,
): Promise<Connection> {
  if (settings.type === "local") return connectLocal(settings, deps, signal);
  const [first, ...others] = remoteKinds(settings);
  if (first === undefined) throw new Error("no way to reach a server");
  try {
    return await connectRemote(settings, first, deps, signal);
  } catch (error) {
    const [second] = others;
    if (second === undefined || !maySpeakSse(causeOf(error))) throw error;
    return connectRemote(settings, second, deps, signal);
  }
}

async function connectLocal(settings: LocalServer, deps: ConnectionDeps, signal: AbortSignal) {
  const { command, args, environment, cwd = deps.roots[0] ?? "/" } = settings;
  const transport = new StdioTransport({ command, args, cwd, env: environment }, deps);
  const connection = new Connection(transport, deps);
  try {
    await connection.open(signal);
    return connection;
  } catch (error) {
    await connection.end();
    const said = transport.errorTail === "" ? "" : `; it wrote: ${transport.errorTail.slice(-500)}`;
    throw failureOf(error, deps.timeoutMs, said);
  }
}

async function connectRemote(
  settings: RemoteServer,
  kind: RemoteKind,
  deps: ConnectionDeps,
  signal: AbortSignal,
): Promise<Connection> {
  const { signIn } = deps;
  const onTooLong = (error: MessageTooLong) => connection.break(error);
  const onSignInNeeded = () => connection.refuse();
  const transport = openRemote(settings, kind, { signIn, onTooLong, onSignInNeeded });
  const connection: Connection = new Connection(transport, deps);
  try {
    await connection.open(signal);
    return connection;
  } catch (error) {
    await connection.end();
    if (connection.isRefused) throw new ConnectError({ kind: "unauthorized" });
    throw failureOf(error, deps.timeoutMs, "");
  }
}

function openRemote(...args: Parameters<typeof remoteTransport>): Transport {
  try {
    return remoteTransport(...args);
  } catch (error) {
    throw new ConnectError({ kind: "failed", reason: messageOf(error), isPassing: false });
  }
}

/** A server that answered, until it is gone or ended. */
export class Connection {
  readonly #client: Client;
  readonly #transport: Transport;
  readonly #deps: ConnectionDeps;
  #state: "opening" | "open" | "ended" = "opening";
  #broken: Error | undefined;
  #isRefused = false;
  #closedReason: string | undefined;

  constructor(transport: Transport, deps: ConnectionDeps) {
    this.#transport = transport;
    this.#deps = deps;
    const info = { name: "fairlead", title: "Fairlead", version: deps.version };
    const capabilities = capabilitiesFor(deps.abilities);
    this.#client = new Client(info, { capabilities });
    this.#listen(capabilities);
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  /** Whether the person must authorize before the server answers. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  refuse(): void {
    this.#isRefused = true;
  }

  async open(signal: AbortSignal): Promise<void> {
    const clock = new CallClock(this.#deps.timeoutMs, signal);
    try {
      const opened = this.#client.connect(this.#transport, { signal: clock.signal, timeout: neverMs });
      await Promise.race([opened, rejectionOf(clock.signal)]);
      if (this.#state === "opening") this.#state = "open";
    } catch (error) {
      throw clock.isUp ? new TimedOut() : (this.#broken ?? error);
    } finally {
      clock.end();
    }
  }

  /** Everything that the server offers now. What cannot be listed is noted and missing. */
  async offers(): Promise<Offers> {
    const capabilities = this.#client.getServerCapabilities() ?? {};
    const none: GivenList = { items: [], isCut: false };
    const problems: string[] = [];
    const list = async (isThere: boolean, method: string, key: string) => {
      const listed = isThere ? await this.#list(method, key) : none;
      if ("items" in listed) return listed;
      problems.push(`its ${key} could not be listed: ${listed.reason}`);
      return none;
    };
    const hasResources = capabilities.resources !== undefined;
    const [tools, prompts, resources, templates] = await Promise.all([
      list(capabilities.tools !== undefined, "tools/list", "tools"),
      list(capabilities.prompts !== undefined, "prompts/list", "prompts"),
      list(hasResources, "resources/list", "resources"),
      list(hasResources, "resources/templates/list", "resourceTemplates"),
    ]);
    const parsed = {
      tools: parseTools(tools),
      prompts: parsePrompts(prompts),
      resources: parseResources(resources),
      templates: parseTemplates(templates),
    };
    return {
      tools: parsed.tools.tools,
      prompts: parsed.prompts.prompts,
      resources: parsed.resources.resources,
      templates: parsed.templates.templates,
      hasResources,
      notes: [...problems, ...Object.values(parsed).flatMap(({ notes }) => notes)],
    };
  }

  /** Sends what the server says from now on as `warning` and above to `onLog`. */
  async quieten(): Promise<void> {
    if (this.#client.getServerCapabilities()?.logging === undefined) return;
    const clock = new CallClock(this.#deps.timeoutMs);
    await this.request("logging/setLevel", { level: "warning" }, z.looseObject({}), { clock });
    clock.end();
  }

  async request<T>(
    method: string,
    params: Record<string, unknown>,
    answer: z.ZodType<T>,
    { clock, onProgress }: RequestOptions,
  ): Promise<Requested<T>> {
    try {
      const value = await this.#client.request({ method, params }, answer, {
        signal: clock.signal,
        timeout: neverMs,
        ...(onProgress && {
          onprogress: (progress) => {
            clock.restart();
            onProgress(progress);
          },
        }),
      });
      return { outcome: "answered", value };
    } catch (error) {
      return { outcome: "failed", failure: this.#requestFailure(error, clock) };
    }
  }

  /** Ends a connection over which nothing useful can come any more. */
  break(error: Error): void {
    if (this.#state === "ended") return;
    this.#broken = error;
    this.#closed(messageOf(error));
    void this.end();
  }

  /** Resolves when nothing of it is left, the server's program included. */
  async end(): Promise<void> {
    this.#state = "ended";
    if (this.#transport instanceof StreamableHTTPClientTransport) {
      // A courtesy: a server that does not take it forgets the session by itself.
      const bye = this.#transport.terminateSession().catch(() => {});
      await orAfter(bye, goodbyeMs, undefined);
    }
    // The client knows no transport before it is connected, and then closes its own.
    for (const part of [this.#client, this.#transport]) await this.#close(part);
  }

  async #close(part: Client | Transport): Promise<void> {
    try {
      await part.close();
    } catch (error) {
      this.#deps.log.warn("an MCP connection could not be closed", { error: messageOf(error) });
    }
  }

  #listen(capabilities: ClientCapabilities): void {
    const client = this.#client;
    const { roots } = this.#deps;
    client.setRequestHandler(ListRootsRequestSchema, () => ({
      roots: roots.map((path) => ({ uri: pathToFileURL(path).href, name: basename(path) })),
    }));
    if (capabilities.elicitation !== undefined) {
      client.setRequestHandler(ElicitRequestSchema, ({ params }, { signal }) =>
        this.#deps.onElicit(params, signal),
      );
    }
    for (const schema of [
      ToolListChangedNotificationSchema,
      PromptListChangedNotificationSchema,
      ResourceListChangedNotificationSchema,
    ])
      client.setNotificationHandler(schema, () => this.#deps.onListChanged());
    client.setNotificationHandler(ElicitationCompleteNotificationSchema, ({ params }) =>
      this.#deps.onElicited(params.elicitationId),
    );
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params: { level, data } }) =>
      this.#deps.onLog(level, typeof data === "string" ? data : JSON.stringify(data)),
    );
    // The SDK knows no other way to listen.
    Object.assign(client, {
      onclose: () => this.#closed(this.#whyClosed()),
      onerror: (error: Error) => this.#noteError(error),
    });
  }

  /** A stream of events that does not come back takes the connection with it. */
  #noteError(error: Error): void {
    const isGone = error instanceof SseError || error.message.startsWith("Maximum reconnection attempts");
    if (this.isOpen && isGone) this.break(error);
  }

  #closed(reason: string): void {
    if (this.#state !== "open") return;
    this.#state = "ended";
    this.#closedReason = reason;
    this.#deps.onClosed(reason);
  }

  #whyClosed(): string {
    const said = this.#transport instanceof StdioTransport ? this.#transport.errorTail.slice(-500) : "";
    const what =
      this.#transport instanceof StdioTransport ? "its program ended" : "its connection was closed";
    return said === "" ? what : `${what}; it wrote: ${said}`;
  }

  async #list(method: string, key: string): Promise<GivenList | { reason: string }> {
    const pageSchema = z.looseObject({
      [key]: z.array(z.unknown()),
      nextCursor: z.string().optional().catch(undefined),
    });
    const items: unknown[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < pagesLimit && items.length <= offerLimit; page++) {
      const clock = new CallClock(this.#deps.timeoutMs);
      const listed = await this.request(method, cursor === undefined ? {} : { cursor }, pageSchema, {
        clock,
      });
      clock.end();
      if (listed.outcome === "failed")
        return { reason: describeFailure(listed.failure, this.#deps.timeoutMs) };
      const found = listed.value[key];
      if (Array.isArray(found)) items.push(...found.slice(0, offerLimit + 1));
      const { nextCursor } = listed.value;
      const next = typeof nextCursor === "string" ? nextCursor : undefined;
      if (next === undefined || next === cursor) break;
      cursor = next;
    }
    return { items: items.slice(0, offerLimit), isCut: items.length > offerLimit };
  }

  #requestFailure(error: unknown, clock: CallClock): RequestFailure {
    if (clock.isUp) return { kind: "timed-out" };
    if (clock.signal.aborted) return { kind: "cancelled" };
    if (this.#broken instanceof MessageTooLong) return { kind: "failed", reason: this.#broken.message };
    if (this.#isRefused) return { kind: "unauthorized" };
    if (error instanceof UrlElicitationRequiredError) {
      const visits = error.elicitations.map(({ elicitationId: id, url, message }) => ({ id, url, message }));
      return { kind: "visit", visits };
    }
    if (error instanceof StreamableHTTPError && error.code === 401) return { kind: "unauthorized" };
    if (!this.isOpen || isDrop(error))
      return { kind: "dropped", reason: this.#closedReason ?? readable(error) };
    return { kind: "failed", reason: readable(error) };
  }
}

/** What is said of a failed request, to the model and to the person. */
export function describeFailure(failure: RequestFailure, timeoutMs: number): string {
  switch (failure.kind) {
    case "dropped":
    case "failed":
      return failure.reason;
    case "unauthorized":
      return "it wants to know who asks, and nobody is signed in";
    case "timed-out":
      return `no answer within ${timeoutMs / 1_000} s`;
    case "cancelled":
      return "it was cancelled";
    case "visit":
      return `the person has to visit ${failure.visits.map(({ url }) => url).join(", ")} first`;
  }
}

class TimedOut extends Error {
  override readonly name = "TimedOut";
}

function capabilitiesFor({ forms, urls }: ElicitationAbilities): ClientCapabilities {
  const elicitation = { ...(forms && { form: { applyDefaults: true } }), ...(urls && { url: {} }) };
  return { roots: {}, ...((forms || urls) && { elicitation }) };
}

function failureOf(error: unknown, timeoutMs: number, said: string): ConnectError {
  const failed = (reason: string, isPassing: boolean) =>
    Object.assign(new ConnectError({ kind: "failed", reason: `${reason}${said}`, isPassing }), {
      cause: error,
    });
  if (error instanceof TimedOut) return failed(`it did not answer within ${timeoutMs / 1_000} s`, false);
  if (error instanceof StreamableHTTPError && error.code === 401)
    return new ConnectError({ kind: "unauthorized" });
  if (error instanceof SseError && error.code === 401) return new ConnectError({ kind: "unauthorized" });
  if (error instanceof UserError || error instanceof MessageTooLong) return failed(messageOf(error), false);
  if (error instanceof McpError && error.message.endsWith("Connection closed"))
    return failed("it ended before it answered", true);
  return failed(readable(error), isDrop(error));
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}

/** What a new connection may mend. 404 says that the server has forgotten the session. */
function isDrop(error: unknown): boolean {
  if (error instanceof StreamableHTTPError) return error.code === 404 || (error.code ?? 0) >= 500;
  return error instanceof TypeError || messageOf(error) === "Not connected";
}

/** `fetch failed` says nothing; its cause does. */
function readable(error: unknown): string {
  if (typeof error === "object" && error !== null && "issues" in error)
    return "it gave an answer that is none of the protocol's";
  const text = messageOf(error)
    .replace(/^MCP error -?\d+: /, "")
    .slice(0, errorLength);
  const cause = causeOf(error);
  return error instanceof TypeError && cause instanceof Error ? `${text}: ${describeCause(cause)}` : text;
}

/** A name with several addresses fails with one error for each. */
function describeCause(cause: Error): string {
  if (cause instanceof AggregateError) return messageOf(cause.errors[0]);
  return messageOf(cause);
}

function rejectionOf(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = () => reject(new Error("cancelled"));
    if (signal.aborted) fail();
    else signal.addEventListener("abort", fail, { once: true });
  });
}
