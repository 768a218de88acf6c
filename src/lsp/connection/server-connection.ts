import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import {
  CancellationTokenSource,
  createMessageConnection,
  type MessageConnection,
} from "vscode-jsonrpc/node";
import type { ClientCapabilities, InitializeParams, WorkspaceFolder } from "vscode-languageserver-protocol";
import { z } from "zod";
import { orAfter, orWhenAborted } from "../../base/async.ts";
import { UserError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { isRecord } from "../../base/text/record.ts";
import type { LanguageServerConfig } from "../../config/schema.ts";
import type { PipedExit, PipedProcess } from "../../workspace/process/piped-process.ts";
import { BoundedMessageReader } from "./message-reader.ts";
import { CountingMessageWriter } from "./message-writer.ts";
import type { PositionEncoding } from "./positions.ts";
import { ServerCapabilities } from "./server-capabilities.ts";
import { ServerProgress } from "./server-progress.ts";

export interface ServerConnectionDeps {
  readonly name: string;
  readonly config: LanguageServerConfig & { command: string[] };
  /** Real path of the server's folder. */
  readonly root: string;
  readonly log: Log;
}

export interface ServerListener {
  onPublished(params: unknown): void;
  /** Called when the connection has failed. */
  onFailed(): void;
}

const startLimitMs = 30_000;
const stderrLimit = 2_000;

/** Process and JSON-RPC connection of a language server. Rejections have a message for the user. */
export class ServerConnection {
  readonly #deps: ServerConnectionDeps;
  readonly #listener: ServerListener;
  readonly #program: PipedProcess;
  readonly #messages: MessageConnection;
  readonly #capabilities = new ServerCapabilities();
  readonly progress = new ServerProgress();
  #stderr = "";
  #failure: UserError | undefined;

  constructor(deps: ServerConnectionDeps, program: PipedProcess, listener: ServerListener) {
    this.#deps = deps;
    this.#listener = listener;
    this.#program = program;
    const writer = new CountingMessageWriter(program.input);
    this.#messages = createMessageConnection(new BoundedMessageReader(program.output, writer), writer);
    this.#answerRequests();
    this.#watch();
    this.#messages.listen();
  }

  /** Whether the server supports pull diagnostics. */
  get isPulled(): boolean {
    return this.supports("textDocument/diagnostic");
  }

  /** The unit of columns in the server's positions. */
  get encoding(): PositionEncoding {
    return this.#capabilities.encoding;
  }

  supports(method: string): boolean {
    return this.#capabilities.supports(method);
  }

  /** Resolves when the server registers further methods. */
  get registered(): Promise<void> {
    return this.#capabilities.changed;
  }

  get isAlive(): boolean {
    return this.#failure === undefined;
  }

  assertAlive(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Undefined if no response came in time. */
  async request(method: string, params: unknown, limitMs: number): Promise<{ answer: unknown } | undefined> {
    const request = this.#messages.sendRequest(method, params).then((answer) => ({ answer }));
    return orAfter(this.#orFailure(request), limitMs, undefined);
  }

  /** Sends a request until the signal aborts, which cancels it in the server too. */
  async requestUntil(method: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    signal.throwIfAborted();
    const source = new CancellationTokenSource();
    const cancel = () => source.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const request = this.#orFailure(this.#messages.sendRequest<unknown>(method, params, source.token));
      const answer = await orWhenAborted(request, signal, undefined);
      signal.throwIfAborted();
      return answer;
    } finally {
      signal.removeEventListener("abort", cancel);
      source.dispose();
    }
  }

  notify(method: string, params: unknown): Promise<void> {
    return this.#orFailure(this.#messages.sendNotification(method, params));
  }

  async end(): Promise<void> {
    this.#fail("it was ended");
    await this.#program.end();
  }

  /** Must be called first. */
  async initialize(): Promise<void> {
    const { name, config } = this.#deps;
    const answered = await this.request("initialize", this.#initializeParams(), startLimitMs);
    if (answered === undefined)
      throw new UserError(`The language server ${name} did not answer within ${startLimitMs / 1000} s.`);
    const result = initializeResultSchema.safeParse(answered.answer).data;
    if (result === undefined)
      throw new UserError(`The language server ${name} sent an invalid response to initialize.`);
    this.#capabilities.setInitial(result.capabilities ?? {});
    await this.notify("initialized", {});
    this.progress.begin();
    if (config.initialization === undefined) return;
    await this.notify("workspace/didChangeConfiguration", { settings: config.initialization });
  }

  #initializeParams(): InitializeParams {
    const { root, config } = this.#deps;
    return {
      processId: process.pid,
      clientInfo: { name: "Fairlead" },
      rootPath: root,
      rootUri: toUri(root),
      workspaceFolders: [this.#folder()],
      ...(config.initialization && { initializationOptions: config.initialization }),
      capabilities: clientCapabilities,
    };
  }

  #folder(): WorkspaceFolder {
    const { root } = this.#deps;
    return { uri: toUri(root), name: basename(root) };
  }

  #answerRequests(): void {
    const { config } = this.#deps;
    const messages = this.#messages;
    messages.onRequest("workspace/configuration", (params: unknown) => {
      const { items } = configurationSchema.parse(params);
      return items.map(({ section }) => getSetting(config.initialization, section));
    });
    messages.onRequest("workspace/workspaceFolders", () => [this.#folder()]);
    messages.onRequest("workspace/applyEdit", () => ({
      applied: false,
      failureReason: "This client applies only edits that it requested.",
    }));
    messages.onRequest("client/registerCapability", (params: unknown) => {
      this.#capabilities.register(params);
      return null;
    });
    messages.onRequest("client/unregisterCapability", (params: unknown) => {
      this.#capabilities.unregister(params);
      return null;
    });
    messages.onUnhandledProgress((params) => this.progress.note(params));
    messages.onRequest("window/showDocument", () => ({ success: false }));
    for (const method of methodsWithNullResult) messages.onRequest(method, () => null);
    messages.onNotification("textDocument/publishDiagnostics", (params: unknown) =>
      this.#listener.onPublished(params),
    );
  }

  #watch(): void {
    const { name, log } = this.#deps;
    this.#program.errors.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-stderrLimit);
    });
    this.#messages.onError(([error]) => {
      log.warn("language server sent an invalid message", { name, error: error.message });
      this.#fail(error.message);
    });
    void this.#program.exited.then((how) =>
      this.#fail(`it ended with ${describeExit(how)}${this.#describeStderr()}`),
    );
  }

  #describeStderr(): string {
    const line = this.#stderr.trim().split("\n").at(-1)?.trim() ?? "";
    return line === "" ? "" : `: ${line}`;
  }

  /** Fails the connection; ending the messages rejects pending requests. */
  #fail(why: string): void {
    if (this.#failure !== undefined) return;
    this.#failure = new UserError(`The language server ${this.#deps.name} was disabled: ${why}`);
    this.#messages.dispose();
    this.progress.clear();
    this.#listener.onFailed();
  }

  async #orFailure<T>(sent: Promise<T>): Promise<T> {
    try {
      return await sent;
    } catch (error) {
      throw this.#failure ?? error;
    }
  }
}

function describeExit({ code, signalName }: PipedExit): string {
  return signalName === null ? `exit code ${code}` : `signal ${signalName}`;
}

export function toUri(path: string): string {
  return pathToFileURL(path).href;
}

const clientCapabilities: ClientCapabilities = {
  general: { positionEncodings: ["utf-16"] },
  window: { workDoneProgress: true },
  workspace: {
    configuration: true,
    workspaceFolders: true,
    didChangeConfiguration: {},
    symbol: { dynamicRegistration: true },
    workspaceEdit: {
      documentChanges: true,
      resourceOperations: ["create", "rename", "delete"],
      failureHandling: "abort",
    },
  },
  textDocument: {
    synchronization: { didSave: true },
    publishDiagnostics: { versionSupport: true },
    diagnostic: { dynamicRegistration: true },
    definition: { dynamicRegistration: true, linkSupport: true },
    implementation: { dynamicRegistration: true, linkSupport: true },
    references: { dynamicRegistration: true },
    hover: { dynamicRegistration: true, contentFormat: ["markdown", "plaintext"] },
    documentSymbol: { dynamicRegistration: true, hierarchicalDocumentSymbolSupport: true },
    callHierarchy: { dynamicRegistration: true },
    rename: { dynamicRegistration: true, prepareSupport: true },
  },
};

const initializeResultSchema = z.looseObject({ capabilities: z.record(z.string(), z.unknown()).nullish() });
/** Maximum number of settings per request, because each response may contain all of them. */
const sectionsLimit = 1_000;
const configurationSchema = z.looseObject({
  items: z.array(z.looseObject({ section: z.string().nullish() })).max(sectionsLimit),
});

const methodsWithNullResult = [
  "window/showMessageRequest",
  "window/workDoneProgress/create",
  "workspace/diagnostic/refresh",
];

/** Setting with a dotted name; null if there is none, as the protocol requires. */
function getSetting(settings: unknown, section: string | null | undefined): unknown {
  let value = settings;
  for (const key of section?.split(".") ?? [])
    value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value ?? null;
}
