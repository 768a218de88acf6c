import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { createMessageConnection, type MessageConnection } from "vscode-jsonrpc/node";
import type { InitializeParams, WorkspaceFolder } from "vscode-languageserver-protocol";
import { z } from "zod";
import { orAfter } from "../base/async.ts";
import { UserError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { isRecord } from "../base/text/record.ts";
import type { LanguageServerConfig } from "../config/schema.ts";
import type { PipedExit, PipedProcess } from "../workspace/process/piped-process.ts";
import { BoundedMessageReader } from "./message-reader.ts";
import { CountingMessageWriter } from "./message-writer.ts";

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
  #isPulled = false;
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
    return this.#isPulled;
  }

  assertAlive(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Undefined if no response came in time. */
  async request(method: string, params: unknown, limitMs: number): Promise<{ answer: unknown } | undefined> {
    const request = this.#messages.sendRequest(method, params).then((answer) => ({ answer }));
    return orAfter(this.#orFailure(request), limitMs, undefined);
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
    this.#isPulled = isFolderUri(result.capabilities?.diagnosticProvider);
    await this.notify("initialized", {});
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
      capabilities: {
        general: { positionEncodings: ["utf-16"] },
        window: { workDoneProgress: true },
        workspace: { configuration: true, workspaceFolders: true, didChangeConfiguration: {} },
        textDocument: {
          synchronization: { didSave: true },
          publishDiagnostics: { versionSupport: true },
          diagnostic: {},
        },
      },
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
    messages.onRequest("workspace/applyEdit", () => ({ applied: false }));
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

const initializeResultSchema = z.looseObject({
  capabilities: z.looseObject({ diagnosticProvider: z.unknown().optional() }).nullish(),
});
/** Maximum number of settings per request, because each response may contain all of them. */
const sectionsLimit = 1_000;
const configurationSchema = z.looseObject({
  items: z.array(z.looseObject({ section: z.string().nullish() })).max(sectionsLimit),
});

const methodsWithNullResult = [
  "client/registerCapability",
  "client/unregisterCapability",
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

function isFolderUri(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}
