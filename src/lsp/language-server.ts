import { basename } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createMessageConnection, type MessageConnection, StreamMessageWriter } from "vscode-jsonrpc/node";
import type { InitializeParams, WorkspaceFolder } from "vscode-languageserver-protocol";
import { z } from "zod";
import { deferred, type Deferred, orAfter } from "../base/async.ts";
import { UserError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { LanguageServerConfig } from "../config/schema.ts";
import type { Processes, RunningProgram } from "../workspace/process.ts";
import { languageOf } from "./languages.ts";
import { BoundedMessageReader } from "./message-reader.ts";
import { type Diagnostic, diagnosticSchema, newProblems, type Problem, toProblems } from "./problems.ts";

/** A file before and after an edit; null is "no such file". */
export interface EditedFile {
  /** Absolute. */
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
}

export interface LanguageServerDeps {
  readonly name: string;
  readonly config: LanguageServerConfig & { command: string[] };
  /** Absolute real path of the folder that it is for. */
  readonly root: string;
  readonly processes: Processes;
  /** The text of a file on disk; undefined where it is gone or no text. */
  readonly read: (path: string) => Promise<string | undefined>;
  readonly log: Log;
  /** For tests; {@link quietMs} unless given. */
  readonly quietMs?: typeof quietMs | undefined;
}

const startLimitMs = 30_000;
/** How long a server may be silent about a text that it was given. */
const silenceLimitMs = 10_000;
/** A server may report in several pieces. They are complete when nothing came for this long, or for twice its longest pause so far. */
const quietMs = { first: 1_000, least: 400, most: 1_500 };
/** What it says when a file is closed comes at once, if it says anything. */
const closingMs = 200;
const openLimit = 20;
const stderrLimit = 2_000;

/**
 * A running language server. It is told of each edit and asked for the errors that came with it. All that rejects
 * does so with a sentence for the person.
 */
export class LanguageServer {
  readonly #deps: LanguageServerDeps;
  readonly #program: RunningProgram;
  readonly #connection: MessageConnection;
  /** By path, the one used last at the end. */
  readonly #documents = new Map<string, Document>();
  /** What was there before, or was told to the model. */
  #known: readonly Problem[] = [];
  #isPulled = false;
  #reportsVersions = false;
  #longestPauseMs: number | undefined;
  #lastReport = 0;
  #bell: Deferred<void> = deferred();
  /** A file that was closed, of which the server may say something yet. */
  #closing: string | undefined;
  #stderr = "";
  #failure: UserError | undefined;

  static async start(deps: LanguageServerDeps): Promise<LanguageServer> {
    const { config, root, processes } = deps;
    const program = await processes.start({ command: config.command, cwd: root, env: config.env });
    const server = new LanguageServer(deps, program);
    try {
      await server.#initialize();
    } catch (error) {
      await server.end();
      throw error;
    }
    return server;
  }

  private constructor(deps: LanguageServerDeps, program: RunningProgram) {
    this.#deps = deps;
    this.#program = program;
    this.#connection = createMessageConnection(
      new BoundedMessageReader(program.stdout),
      new StreamMessageWriter(program.stdin),
    );
    this.#answerRequests();
    this.#watch();
    this.#connection.listen();
  }

  /**
   * The errors that the edits brought. Tell {@link accept} when the model has got them; else they are found again.
   */
  async check(edited: readonly EditedFile[]): Promise<Problem[]> {
    this.#assertAlive();
    await this.#settle(await this.#show(await this.#textsBefore(edited)), { isBefore: true });
    const shown = await this.#show(edited.map(({ path, after }) => ({ path, text: after })));
    await this.#tellSaved(edited);
    await this.#settle(shown, { isBefore: false });
    await this.#closeOldest();
    return newProblems(this.#known, this.#problems());
  }

  /** What it reports now is known to the model. */
  accept(): void {
    this.#known = this.#problems();
  }

  async end(): Promise<void> {
    this.#fail("it was ended");
    this.#connection.dispose();
    await this.#program.end();
  }

  async #initialize(): Promise<void> {
    const { name, config } = this.#deps;
    const answered = this.#connection.sendRequest("initialize", this.#initializeParams());
    const answer = await orAfter(Promise.race([answered, this.#failed()]), startLimitMs, "late");
    if (answer === "late")
      throw new UserError(`The language server ${name} did not answer within ${startLimitMs / 1000} s.`);
    const result = initializeResultSchema.safeParse(answer).data;
    if (result === undefined)
      throw new UserError(`The language server ${name} began with an answer that is none.`);
    const { capabilities } = result;
    this.#isPulled = isGiven(capabilities?.diagnosticProvider);
    await this.#connection.sendNotification("initialized", {});
    if (config.initialization === undefined) return;
    await this.#connection.sendNotification("workspace/didChangeConfiguration", {
      settings: config.initialization,
    });
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
    const connection = this.#connection;
    connection.onRequest("workspace/configuration", (params: unknown) => {
      const { items } = configurationSchema.parse(params);
      return items.map(({ section }) => settingOf(config.initialization, section));
    });
    connection.onRequest("workspace/workspaceFolders", () => [this.#folder()]);
    connection.onRequest("workspace/applyEdit", () => ({ applied: false }));
    connection.onRequest("window/showDocument", () => ({ success: false }));
    for (const method of methodsWithoutAnswer) connection.onRequest(method, () => null);
    connection.onNotification("textDocument/publishDiagnostics", (params: unknown) => this.#take(params));
  }

  #watch(): void {
    const { name, log } = this.#deps;
    this.#program.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-stderrLimit);
    });
    this.#connection.onError(([error]) => {
      log.warn("a language server is not understood", { name, error: error.message });
      this.#fail(error.message);
    });
    void this.#program.exited.then((how) => this.#fail(`it ended with ${how}${this.#lastWords()}`));
  }

  #lastWords(): string {
    const line = this.#stderr.trim().split("\n").at(-1)?.trim() ?? "";
    return line === "" ? "" : `: ${line}`;
  }

  #fail(why: string): void {
    this.#failure ??= new UserError(`The language server ${this.#deps.name} is not used any more: ${why}`);
    this.#ring();
  }

  /** Rejects when the server has failed; never resolves. */
  async #failed(): Promise<never> {
    while (this.#failure === undefined) await this.#nextReport();
    throw this.#failure;
  }

  #assertAlive(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Files that are open must be what they were before the edit, whoever changed them since. */
  async #textsBefore(edited: readonly EditedFile[]): Promise<ShownText[]> {
    const touched = new Set(edited.map(({ path }) => path));
    const others = [...this.#documents.keys()].filter((path) => !touched.has(path));
    const onDisk = others.map(async (path) => ({ path, text: (await this.#deps.read(path)) ?? null }));
    const before = edited.map(({ path, before }) => ({ path, text: before }));
    return [...before, ...(await Promise.all(onDisk))];
  }

  /** Opens, changes and closes documents; answers those that the server has to look at anew. */
  async #show(texts: readonly ShownText[]): Promise<Document[]> {
    const changed: Document[] = [];
    for (const { path, text } of texts) {
      const document = await this.#showOne(path, text);
      if (document !== undefined) changed.push(document);
    }
    return changed;
  }

  async #showOne(path: string, text: string | null): Promise<Document | undefined> {
    const open = this.#documents.get(path);
    if (text === null) return open && this.#close(open);
    if (open === undefined) return this.#open(path, text, 1);
    this.#documents.delete(path);
    this.#documents.set(path, open);
    if (open.text === text) return undefined;
    if (this.#isPulled || this.#reportsVersions) return this.#change(open, text);
    // Without versions nobody could tell a late report on the old text from one on the new; some servers say
    // nothing at all where a change brings nothing new. Of what is opened every server reports.
    await this.#close(open);
    await this.#reportOf(open);
    return this.#open(path, text, open.version + 1);
  }

  async #open(path: string, text: string, version: number): Promise<Document> {
    const document: Document = {
      path,
      uri: toUri(path),
      text,
      version,
      pushed: [],
      pulled: [],
      ...unreported,
    };
    this.#documents.set(path, document);
    const textDocument = { uri: document.uri, languageId: languageOf(path), version, text };
    await this.#connection.sendNotification("textDocument/didOpen", { textDocument });
    return document;
  }

  async #change(document: Document, text: string): Promise<Document> {
    Object.assign(document, { text, version: document.version + 1, ...unreported });
    const { uri, version } = document;
    const params = { textDocument: { uri, version }, contentChanges: [{ text }] };
    await this.#connection.sendNotification("textDocument/didChange", params);
    return document;
  }

  async #close(document: Document): Promise<undefined> {
    this.#documents.delete(document.path);
    await this.#connection.sendNotification("textDocument/didClose", { textDocument: { uri: document.uri } });
  }

  /** Waits a moment for what a server says of a file that was closed. */
  async #reportOf(closed: Document): Promise<void> {
    this.#closing = closed.path;
    const end = performance.now() + closingMs;
    while (this.#closing !== undefined && performance.now() < end)
      await orAfter(this.#nextReport(), Math.max(1, end - performance.now()), undefined);
    this.#closing = undefined;
  }

  async #tellSaved(edited: readonly EditedFile[]): Promise<void> {
    const changes = edited.map(({ path, before, after }) => ({
      uri: toUri(path),
      type: fileEvent(before, after),
    }));
    await this.#connection.sendNotification("workspace/didChangeWatchedFiles", { changes });
    for (const { path, after } of edited) {
      if (after === null) continue;
      await this.#connection.sendNotification("textDocument/didSave", { textDocument: { uri: toUri(path) } });
    }
  }

  /** Waits until the server has said what it thinks of the documents. */
  async #settle(documents: readonly Document[], { isBefore }: { isBefore: boolean }): Promise<void> {
    if (documents.length === 0) return;
    if (this.#isPulled) await Promise.all(documents.map((document) => this.#pull(document)));
    else await this.#awaitReports(documents);
    if (!isBefore) return;
    const paths = new Set(documents.map(({ path }) => path));
    const others = this.#known.filter(({ path }) => !paths.has(path));
    this.#known = [...others, ...documents.flatMap(problemsOf)];
  }

  async #pull(document: Document): Promise<void> {
    const { uri } = document;
    const asked = this.#connection.sendRequest("textDocument/diagnostic", { textDocument: { uri } });
    const answer = await orAfter(Promise.race([asked, this.#failed()]), silenceLimitMs, undefined);
    const report = reportSchema.safeParse(answer).data;
    if (report?.items !== undefined) document.pulled = toDiagnostics(report.items);
  }

  async #awaitReports(documents: readonly Document[]): Promise<void> {
    const end = performance.now() + silenceLimitMs;
    while (true) {
      this.#assertAlive();
      const now = performance.now();
      const isComplete = documents.every(({ reportedAt }) => reportedAt !== undefined);
      const until = isComplete ? Math.min(end, this.#lastReport + this.#quietMs()) : end;
      if (until <= now) break;
      await orAfter(this.#nextReport(), until - now, undefined);
    }
    this.#longestPauseMs ??= 0;
    for (const document of documents) document.isSettled = true;
  }

  #quietMs(): number {
    const { first, least, most } = this.#deps.quietMs ?? quietMs;
    const pause = this.#longestPauseMs;
    return pause === undefined ? first : Math.min(most, Math.max(least, 2 * pause));
  }

  #nextReport(): Promise<void> {
    return this.#bell.promise;
  }

  #take(params: unknown): void {
    const report = publicationSchema.safeParse(params).data;
    if (report === undefined) return;
    const path = toPath(report.uri) ?? "";
    if (path === this.#closing) this.#closing = undefined;
    const document = this.#documents.get(path);
    const version = report.version ?? undefined;
    if (version !== undefined) this.#reportsVersions = true;
    if (document !== undefined && (version ?? document.version) >= document.version) {
      document.pushed = toDiagnostics(report.diagnostics);
      this.#noteReport(document);
    }
    this.#ring();
  }

  #noteReport(document: Document): void {
    const now = performance.now();
    const { reportedAt, isSettled } = document;
    if (reportedAt !== undefined && !isSettled)
      this.#longestPauseMs = Math.max(this.#longestPauseMs ?? 0, now - reportedAt);
    document.reportedAt = now;
    if (!isSettled) this.#lastReport = now;
  }

  #ring(): void {
    const bell = this.#bell;
    this.#bell = deferred();
    bell.resolve();
  }

  #problems(): Problem[] {
    return [...this.#documents.values()].flatMap(problemsOf);
  }

  async #closeOldest(): Promise<void> {
    const oldest = [...this.#documents.values()].slice(0, -openLimit);
    for (const document of oldest) await this.#close(document);
  }
}

interface ShownText {
  readonly path: string;
  readonly text: string | null;
}

interface Document {
  readonly path: string;
  readonly uri: string;
  text: string;
  version: number;
  /** When the server last said something of this text. */
  reportedAt: number | undefined;
  /** Whether what it said counts as complete. */
  isSettled: boolean;
  pushed: readonly Diagnostic[];
  pulled: readonly Diagnostic[];
}

const initializeResultSchema = z.looseObject({
  capabilities: z.looseObject({ diagnosticProvider: z.unknown().optional() }).nullish(),
});
const configurationSchema = z.looseObject({
  items: z.array(z.looseObject({ section: z.string().nullish() })),
});
const publicationSchema = z.looseObject({
  uri: z.string(),
  version: z.number().nullish(),
  diagnostics: z.array(z.unknown()),
});
const reportSchema = z.looseObject({ items: z.array(z.unknown()).optional() });

const unreported = { reportedAt: undefined, isSettled: false };

const methodsWithoutAnswer = [
  "client/registerCapability",
  "client/unregisterCapability",
  "window/showMessageRequest",
  "window/workDoneProgress/create",
  "workspace/diagnostic/refresh",
];

function problemsOf({ path, text, pushed, pulled }: Document): Problem[] {
  const problems = [...toProblems(path, text, pushed), ...toProblems(path, text, pulled)];
  const places = new Map(problems.map((problem) => [JSON.stringify(problem), problem]));
  return [...places.values()];
}

function toDiagnostics(values: readonly unknown[]): Diagnostic[] {
  return values.flatMap((value) => diagnosticSchema.safeParse(value).data ?? []);
}

/** The protocol's FileChangeType. */
function fileEvent(before: string | null, after: string | null): 1 | 2 | 3 {
  if (before === null) return 1;
  return after === null ? 3 : 2;
}

function toUri(path: string): string {
  return pathToFileURL(path).href;
}

/** Servers write the same address in different ways. */
function toPath(uri: string): string | undefined {
  try {
    return fileURLToPath(uri);
  } catch {
    // Not a file's: of no document that we have.
    return undefined;
  }
}

/** The setting under a name with dots; null where there is none, as the protocol wants it. */
function settingOf(settings: unknown, section: string | null | undefined): unknown {
  let value = settings;
  for (const key of section?.split(".") ?? [])
    value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value ?? null;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function isGiven(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}
