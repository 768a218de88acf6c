import { isRecord } from "../../base/text/record.ts";
import { errorFields } from "../../base/error-fields.ts";
import {
  type CallToolRequestOptions,
  Client,
  type ClientCapabilities,
  type CreateMessageRequest,
  type CreateMessageResult,
  type ElicitRequest,
  type ElicitResult,
  LOG_LEVEL_META_KEY,
  type ServerCapabilities,
  SseError,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { orAfter } from "../../base/async.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { UserCapabilities } from "../../message/elicitation.ts";
import { MessageTooLongError } from "./bounded-fetch.ts";
import { CallClock } from "./call-clock.ts";
import { ChangeStream, getListFilter } from "./change-stream.ts";
import type { Era } from "./era-store.ts";
import { toReadable, toRequestFailure, type RequestFailure, TimeoutError } from "./failures.ts";
import { ResourceWatch } from "./resource-watch.ts";
import { StdioTransport } from "./stdio-transport.ts";

/** Timeout to end a session at a remote server. */
const closeTimeoutMs = 500;
/** Time for a server to report which generation of the protocol it uses. */
const probeTimeoutMs = 5_000;
/** Maximum number of answers to one request that ask for more input. */
const inputRoundsLimit = 20;
/** Disables the SDK's timeouts, because those of `CallClock` pause while the user is asked. */
const neverMs = 2 ** 31 - 1;

export interface ConnectionDeps {
  readonly version: string;
  readonly log: Log;
  /** Absolute paths; the session's folder first. */
  readonly roots: readonly string[];
  readonly capabilities: UserCapabilities;
  readonly timeoutMs: number;
  onElicit(params: ElicitRequest["params"], signal: AbortSignal): Promise<ElicitResult>;
  /** Asks the session's model. Rejects with an error for the server. */
  onSample(params: CreateMessageRequest["params"], signal: AbortSignal): Promise<CreateMessageResult>;
  onElicited(elicitationId: string): void;
  /** Called once when the connection is lost. */
  onClosed(reason: string): void;
  onListChanged(): void;
  onResourceChanged(uri: string): void;
  onLog(level: string, text: string): void;
}

export type RequestResult<T> = { readonly outcome: "answered"; readonly value: T } | Failed;
type Failed = { readonly outcome: "failed"; readonly failure: RequestFailure };

/** The first request on a connection: `initialize`, or `server/discover` with a fallback to `initialize`. */
export type FirstRequest = "initialize" | "discover";

export interface RequestOptions {
  readonly clock: CallClock;
  /** The called tool. Its schema may name parameters to repeat in HTTP headers. */
  readonly tool?: { readonly name: string; readonly schema: Readonly<Record<string, unknown>> } | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

export interface Progress {
  readonly progress?: number | undefined;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

/** An established connection to a server. */
export class McpConnection {
  readonly #client: Client;
  readonly #transport: Transport;
  readonly #deps: ConnectionDeps;
  #state: "opening" | "open" | "ended" = "opening";
  #broken: Error | undefined;
  #isRefused = false;
  #closedReason: string | undefined;
  #changes: ChangeStream | undefined;
  #resources: ResourceWatch | undefined;

  /** `offersRoots`: whether the server may request the folders. */
  constructor(transport: Transport, deps: ConnectionDeps, offersRoots: boolean) {
    this.#transport = transport;
    this.#deps = deps;
    const info = { name: "fairlead", title: "Fairlead", version: deps.version };
    const capabilities = capabilitiesFor(deps.capabilities, offersRoots);
    // A program may take long to start, so that only the connection's timeout limits its first answer.
    const timeoutMs = transport instanceof StdioTransport ? neverMs : probeTimeoutMs;
    this.#client = new Client(info, {
      capabilities,
      versionNegotiation: { mode: "auto", probe: { timeoutMs } },
      inputRequired: { maxRounds: inputRoundsLimit },
      jsonSchemaValidator: noOutputCheck,
    });
    this.#listen(capabilities);
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  /** Whether the server requires authorization. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  refuse(): void {
    this.#isRefused = true;
  }

  get capabilities(): ServerCapabilities {
    return this.#client.getServerCapabilities() ?? {};
  }

  /** The server's usage instructions. */
  get instructions(): string {
    return this.#client.getInstructions() ?? "";
  }

  /** The generation of the protocol that the server speaks. */
  get era(): Era {
    return this.#client.getProtocolEra() ?? "legacy";
  }

  /** The negotiated version of the protocol. */
  get protocolVersion(): string | undefined {
    return this.#client.getNegotiatedProtocolVersion();
  }

  /** Whether parameters of tools may be sent in HTTP headers. */
  get usesHeaders(): boolean {
    return this.era === "modern" && this.#transport instanceof StreamableHTTPClientTransport;
  }

  /** Whether tools can run as tasks of the server. */
  get hasTasks(): boolean {
    return this.era === "legacy" && this.capabilities.tasks?.requests?.tools?.call !== undefined;
  }

  /** Name and version of the server, as it reported them. */
  get serverVersion(): string {
    const { name, version } = this.#client.getServerVersion() ?? {};
    return `${name ?? ""} ${version ?? ""}`;
  }

  async open(first: FirstRequest, signal: AbortSignal): Promise<void> {
    const clock = new CallClock(this.#deps.timeoutMs, signal);
    try {
      const opened = this.#client.connect(this.#transport, {
        signal: clock.signal,
        timeout: neverMs,
        ...(first === "initialize" && { prior: { kind: "legacy" } }),
      });
      await Promise.race([opened, rejectOnAbort(clock.signal)]);
      if (this.#state === "opening") this.#state = "open";
    } catch (error) {
      throw clock.isUp ? new TimeoutError() : (this.#broken ?? error);
    } finally {
      clock.end();
    }
  }

  /** Subscribes to changes of the lists. Servers of the legacy generation report them without. */
  listenForChanges(): void {
    if (this.era !== "modern" || !this.isOpen) return;
    this.#changes ??= new ChangeStream(this.#client, getListFilter(this.capabilities), () =>
      this.#deps.onListChanged(),
    );
  }

  /** Subscribes to changes of exactly these resources, if the server supports it. */
  watch(uris: readonly string[]): void {
    if (this.capabilities.resources?.subscribe !== true || !this.isOpen) return;
    this.#resources ??= new ResourceWatch(this, this.#client, this.#deps.timeoutMs);
    this.#resources.set(uris);
  }

  /** Sends further log messages of level `warning` and above to `onLog`. */
  async quieten(): Promise<void> {
    // Servers of the modern generation send those that a request asks for.
    if (this.capabilities.logging === undefined || this.era === "modern") return;
    const clock = new CallClock(this.#deps.timeoutMs);
    await this.request("logging/setLevel", { level: "warning" }, z.looseObject({}), { clock });
    clock.end();
  }

  async request<T>(
    method: string,
    params: Record<string, unknown>,
    answer: z.ZodType<T>,
    { clock, onProgress, tool }: RequestOptions,
  ): Promise<RequestResult<T>> {
    const options = {
      signal: clock.signal,
      timeout: neverMs,
      ...(onProgress && {
        onprogress: (progress: Progress) => {
          clock.restart();
          if (!isDriverNote(progress)) onProgress(progress);
        },
      }),
    };
    try {
      if (this.era === "modern" && tool !== undefined)
        return { outcome: "answered", value: answer.parse(await this.#callTool(params, tool, options)) };
      const value = await this.#client.request(
        { method, params: this.#withLogLevel(params) },
        answer,
        options,
      );
      return { outcome: "answered", value };
    } catch (error) {
      return { outcome: "failed", failure: this.#requestFailure(error, clock) };
    }
  }

  /** Calls a tool with the HTTP headers that its schema asks for. */
  #callTool(
    params: Record<string, unknown>,
    { name, schema }: NonNullable<RequestOptions["tool"]>,
    options: Omit<CallToolRequestOptions, "toolDefinition">,
  ): Promise<unknown> {
    const toolDefinition = { name, inputSchema: { ...schema, type: "object" as const } };
    return this.#client.callTool({ ...this.#withLogLevel(params), name }, { ...options, toolDefinition });
  }

  #withLogLevel(params: Record<string, unknown>): Record<string, unknown> {
    const isWanted = this.era === "modern" && this.capabilities.logging !== undefined;
    if (!isWanted) return params;
    const meta = isRecord(params["_meta"]) ? params["_meta"] : {};
    return { ...params, _meta: { ...meta, [LOG_LEVEL_META_KEY]: "warning" } };
  }

  /** Closes a connection that is no longer usable. */
  break(error: Error): void {
    if (this.#state === "ended") return;
    this.#broken = error;
    this.#closed(messageOf(error));
    void this.end();
  }

  /** Closes the connection. Resolves when the server's program has ended too. */
  async end(): Promise<void> {
    this.#state = "ended";
    this.#changes?.close();
    this.#resources?.close();
    if (this.#transport instanceof StreamableHTTPClientTransport) {
      // Optional: servers that do not support it expire the session themselves.
      const bye = this.#transport.terminateSession().catch(() => {});
      await orAfter(bye, closeTimeoutMs, undefined);
    }
    // Before it is connected, the client does not close the transport.
    for (const part of [this.#client, this.#transport]) await this.#close(part);
  }

  async #close(part: Client | Transport): Promise<void> {
    try {
      await part.close();
    } catch (error) {
      this.#deps.log.warn("MCP connection not closed", errorFields(error));
    }
  }

  #listen(capabilities: ClientCapabilities): void {
    const client = this.#client;
    const { roots } = this.#deps;
    if (capabilities.roots !== undefined) {
      client.setRequestHandler("roots/list", () => ({
        roots: roots.map((path) => ({ uri: pathToFileURL(path).href, name: basename(path) })),
      }));
    }
    if (capabilities.elicitation !== undefined) {
      client.setRequestHandler("elicitation/create", ({ params }, { mcpReq }) =>
        this.#deps.onElicit(params, mcpReq.signal),
      );
    }
    if (capabilities.sampling !== undefined) {
      client.setRequestHandler("sampling/createMessage", ({ params }, { mcpReq }) =>
        this.#deps.onSample(params, mcpReq.signal),
      );
    }
    for (const method of [
      "notifications/tools/list_changed",
      "notifications/prompts/list_changed",
      "notifications/resources/list_changed",
    ] as const)
      client.setNotificationHandler(method, () => this.#deps.onListChanged());
    client.setNotificationHandler("notifications/resources/updated", ({ params }) =>
      this.#deps.onResourceChanged(params.uri),
    );
    client.setNotificationHandler("notifications/elicitation/complete", ({ params }) =>
      this.#deps.onElicited(params.elicitationId),
    );
    client.setNotificationHandler("notifications/message", ({ params: { level, data } }) =>
      this.#deps.onLog(level, typeof data === "string" ? data : JSON.stringify(data)),
    );
    // The SDK has no other way to listen.
    Object.assign(client, {
      onclose: () => this.#closed(this.#explainClose()),
      onerror: (error: Error) => this.#noteError(error),
    });
  }

  /** Closes the connection if its event stream cannot be restored. */
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

  #explainClose(): string {
    const serverText = this.#transport instanceof StdioTransport ? this.#transport.errorTail.slice(-500) : "";
    const what =
      this.#transport instanceof StdioTransport ? "its program ended" : "its connection was closed";
    return serverText === "" ? what : `${what}; it wrote: ${serverText}`;
  }

  #requestFailure(error: unknown, clock: CallClock): RequestFailure {
    if (clock.isUp) return { kind: "timed-out" };
    if (clock.signal.aborted) return { kind: "cancelled" };
    if (this.#broken instanceof MessageTooLongError) return { kind: "failed", reason: this.#broken.message };
    if (this.#isRefused) return { kind: "unauthorized" };
    const failure = toRequestFailure(error);
    if (this.isOpen || failure.kind === "visit" || failure.kind === "unauthorized") return failure;
    return { kind: "dropped", reason: this.#closedReason ?? toReadable(error) };
  }
}

/** Returns whether the SDK reports that it answers questions of the server, which the user sees anyway. */
function isDriverNote({ message }: Progress): boolean {
  return message?.startsWith("Fulfilling input required by ") === true;
}

/** Output of tools is data for the model: a server whose output differs from its own schema is still usable. */
const noOutputCheck = {
  getValidator: (): never => {
    throw new Error("output is not checked");
  },
};

function capabilitiesFor(
  { forms, urls, sampling }: UserCapabilities,
  offersRoots: boolean,
): ClientCapabilities {
  const elicitation = { ...(forms && { form: { applyDefaults: true } }), ...(urls && { url: {} }) };
  return {
    ...(offersRoots && { roots: {} }),
    ...((forms || urls) && { elicitation }),
    ...(sampling && { sampling: {} }),
  };
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = () => reject(new Error("cancelled"));
    if (signal.aborted) fail();
    else signal.addEventListener("abort", fail, { once: true });
  });
}
