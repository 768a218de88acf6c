import { errorFields } from "../../base/error-fields.ts";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SseError } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  type ClientCapabilities,
  ElicitationCompleteNotificationSchema,
  type ElicitRequest,
  ElicitRequestSchema,
  type ElicitResult,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  type ServerCapabilities,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { orAfter } from "../../base/async.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { ElicitationCapabilities } from "../../message/elicitation.ts";
import { MessageTooLongError } from "./bounded-fetch.ts";
import { CallClock } from "./call-clock.ts";
import { toReadable, toRequestFailure, type RequestFailure, TimeoutError } from "./failures.ts";
import { StdioTransport } from "./stdio-transport.ts";

/** Timeout to end a session at a remote server. */
const closeTimeoutMs = 500;
/** Disables the SDK's timeouts, because those of `CallClock` pause while the user is asked. */
const neverMs = 2 ** 31 - 1;

export interface ConnectionDeps {
  readonly version: string;
  readonly log: Log;
  /** Absolute paths; the session's folder first. */
  readonly roots: readonly string[];
  readonly capabilities: ElicitationCapabilities;
  readonly timeoutMs: number;
  onElicit(params: ElicitRequest["params"], signal: AbortSignal): Promise<ElicitResult>;
  onElicited(elicitationId: string): void;
  /** Called once when the connection is lost. */
  onClosed(reason: string): void;
  onListChanged(): void;
  onLog(level: string, text: string): void;
}

export type RequestResult<T> = { readonly outcome: "answered"; readonly value: T } | Failed;
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

/** An established connection to a server. */
export class McpConnection {
  readonly #client: Client;
  readonly #transport: Transport;
  readonly #deps: ConnectionDeps;
  #state: "opening" | "open" | "ended" = "opening";
  #broken: Error | undefined;
  #isRefused = false;
  #closedReason: string | undefined;

  /** `offersRoots`: whether the server may request the folders. */
  constructor(transport: Transport, deps: ConnectionDeps, offersRoots: boolean) {
    this.#transport = transport;
    this.#deps = deps;
    const info = { name: "fairlead", title: "Fairlead", version: deps.version };
    const capabilities = capabilitiesFor(deps.capabilities, offersRoots);
    this.#client = new Client(info, { capabilities });
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

  async open(signal: AbortSignal): Promise<void> {
    const clock = new CallClock(this.#deps.timeoutMs, signal);
    try {
      const opened = this.#client.connect(this.#transport, { signal: clock.signal, timeout: neverMs });
      await Promise.race([opened, rejectOnAbort(clock.signal)]);
      if (this.#state === "opening") this.#state = "open";
    } catch (error) {
      throw clock.isUp ? new TimeoutError() : (this.#broken ?? error);
    } finally {
      clock.end();
    }
  }

  /** Sends further log messages of level `warning` and above to `onLog`. */
  async quieten(): Promise<void> {
    if (this.capabilities.logging === undefined) return;
    const clock = new CallClock(this.#deps.timeoutMs);
    await this.request("logging/setLevel", { level: "warning" }, z.looseObject({}), { clock });
    clock.end();
  }

  async request<T>(
    method: string,
    params: Record<string, unknown>,
    answer: z.ZodType<T>,
    { clock, onProgress }: RequestOptions,
  ): Promise<RequestResult<T>> {
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
      client.setRequestHandler(ListRootsRequestSchema, () => ({
        roots: roots.map((path) => ({ uri: pathToFileURL(path).href, name: basename(path) })),
      }));
    }
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

function capabilitiesFor({ forms, urls }: ElicitationCapabilities, offersRoots: boolean): ClientCapabilities {
  const elicitation = { ...(forms && { form: { applyDefaults: true } }), ...(urls && { url: {} }) };
  return { ...(offersRoots && { roots: {} }), ...((forms || urls) && { elicitation }) };
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = () => reject(new Error("cancelled"));
    if (signal.aborted) fail();
    else signal.addEventListener("abort", fail, { once: true });
  });
}
