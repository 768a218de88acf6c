import { z } from "zod";
import { orAfter, sleep } from "../base/async.ts";
import { messageOf, UserError } from "../base/errors.ts";
import { excerpt } from "../base/text/excerpt.ts";
import { type Document, Documents, listDiagnostics, type DocumentText } from "./documents.ts";
import type { ConfineProgram } from "../sandbox/project-sandbox.ts";
import type { PipedProcess, PipedProcesses } from "../workspace/process/piped-process.ts";
import type { PositionEncoding } from "./connection/positions.ts";
import { type Diagnostic, findNewProblems, parseDiagnostics, type Problem } from "./problems.ts";
import { type quietMs, DiagnosticsWaiter, firstReportMs } from "./reports.ts";
import { toPath } from "./server-answers.ts";
import { ServerConnection, type ServerConnectionDeps, toUri } from "./connection/server-connection.ts";

/** A file before and after an edit; null means "not found". */
export interface EditedFile {
  /** Absolute. */
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
}

export interface LanguageServerDeps extends ServerConnectionDeps {
  readonly processes: PipedProcesses;
  readonly confine: ConfineProgram;
  /** Reads a file from the disk. */
  readonly read: ReadText;
  /** For tests. */
  readonly quietMs?: typeof quietMs | undefined;
  readonly requestLimits?: typeof requestLimits | undefined;
}

/** Time to wait for diagnostics of a closed file; servers that send them do so at once. */
const closedReportMs = 200;

/** Reads the current text of a file; undefined if it does not exist or is not text. */
export type ReadText = (path: string) => Promise<string | undefined>;

/** How a request waits. */
export interface Waiting {
  readonly signal: AbortSignal;
  /** Receives the server's current task while the request waits for it. */
  readonly onProgress: (text: string) => void;
}

/** Limits of a request, in milliseconds. */
export const requestLimits = {
  /** Time for the server to read the project first. */
  indexingMs: 30_000,
  answerMs: 30_000,
  /** Age up to which an empty answer may mean that the server has not read the project yet. */
  youngMs: 10_000,
  /** Age up to which a server may register further methods. */
  registerMs: 1_000,
  /** Time for a recently started server to report its current task. */
  beginMs: 1_500,
};

/** A running language server: checks edits for new errors, and answers questions about files. Rejections have a message for the user. */
export class LanguageServer {
  readonly #name: string;
  readonly #read: ReadText;
  readonly #limits: typeof requestLimits;
  readonly #connection: ServerConnection;
  readonly #documents: Documents;
  readonly #reports: DiagnosticsWaiter;
  /** Problems from before the edits, or already shown to the model. */
  #known: readonly Problem[] = [];
  #reportsVersions = false;
  /** Documents shown for a question, whose problems are not known yet. */
  readonly #unchecked = new Set<string>();
  readonly #startedAt = Date.now();
  /** Times at which the server was informed about changed files, in milliseconds since 1970. */
  readonly #informedAt = new Map<string, number>();
  /** A closed file whose diagnostics may still arrive. */
  #closing: string | undefined;

  static async start(deps: LanguageServerDeps): Promise<LanguageServer> {
    const server = new LanguageServer(deps, await startProgram(deps));
    try {
      await server.#connection.initialize();
    } catch (error) {
      await server.end();
      throw error;
    }
    return server;
  }

  private constructor(deps: LanguageServerDeps, program: PipedProcess) {
    const { name, config, root, log, read, quietMs } = deps;
    this.#name = name;
    this.#read = read;
    this.#limits = deps.requestLimits ?? requestLimits;
    this.#reports = new DiagnosticsWaiter(quietMs);
    this.#connection = new ServerConnection({ name, config, root, log }, program, {
      onPublished: (params) => this.#take(params),
      onFailed: () => this.#reports.wake(),
    });
    this.#documents = new Documents(this.#connection);
  }

  /**
   * Returns errors caused by the edits. Call {@link accept} after showing them; otherwise they are returned
   * again.
   */
  async check(edited: readonly EditedFile[]): Promise<Problem[]> {
    this.#connection.assertAlive();
    const changed = await this.#show(await this.#textsBefore(edited));
    const before = [...new Set([...changed, ...this.#takeUnchecked()])];
    await this.#settle(before);
    this.#rememberProblems(before);
    const after = await this.#show(edited.map(({ path, after: text }) => ({ path, text })));
    await this.#notifySaved(edited);
    await this.#settle(after);
    await this.#documents.closeOldest();
    return findNewProblems(this.#known, this.#documents.errors);
  }

  /** Marks the current problems as known to the model. */
  accept(): void {
    this.#known = this.#documents.errors;
  }

  get isAlive(): boolean {
    return this.#connection.isAlive;
  }

  /** The unit of columns in the server's positions. */
  get encoding(): PositionEncoding {
    return this.#connection.encoding;
  }

  /** The server's current task; empty if it has none. */
  get busyWith(): string {
    return this.#connection.progress.describe();
  }

  get hasOpenFiles(): boolean {
    return this.#documents.paths.length > 0;
  }

  /** Whether the server supports the method. Waits for it briefly after the start: some servers register methods then. */
  async supports(method: string): Promise<boolean> {
    while (!this.#connection.supports(method)) {
      const leftMs = this.#limits.registerMs - this.#connection.progress.ageMs;
      if (leftMs <= 0 || !this.isAlive) return false;
      await orAfter(this.#connection.registered, leftMs, undefined);
    }
    return true;
  }

  /** Shows the current texts of these files and of all open ones. Files that cannot be read are closed. */
  async refresh(paths: readonly string[], read: ReadText): Promise<void> {
    const others = this.#documents.paths.filter((path) => !paths.includes(path));
    const texts = [...others, ...paths].map(async (path) => ({ path, text: (await read(path)) ?? null }));
    for (const { path } of await this.#show(await Promise.all(texts))) this.#unchecked.add(path);
  }

  /** Closes the documents that were not used for the longest time. */
  closeOldest(): Promise<void> {
    return this.#documents.closeOldest();
  }

  /** The text of an open file. */
  textOf(path: string): string | undefined {
    return this.#documents.find(path)?.text;
  }

  /** Whether a file changed after the server started or was last informed about changes. */
  isOutdated(path: string, changedAtMs: number | undefined): boolean {
    return changedAtMs !== undefined && changedAtMs > (this.#informedAt.get(path) ?? this.#startedAt);
  }

  /** Reports files that other programs changed. */
  async notifyChanged(paths: readonly string[]): Promise<void> {
    const now = Date.now();
    for (const path of paths) this.#informedAt.set(path, now);
    const changes = paths.map((path) => ({ uri: toUri(path), type: fileChanged }));
    await this.#connection.notify("workspace/didChangeWatchedFiles", { changes });
  }

  /** Returns the diagnostics of an open file; undefined if the server does not report in time. */
  async diagnosticsOf(path: string): Promise<readonly Diagnostic[] | undefined> {
    const document = this.#documents.find(path);
    if (document === undefined) return [];
    const isPulled = await this.supports("textDocument/diagnostic");
    await this.#settle([document]);
    if (!isPulled && document.reportedAt === undefined) return undefined;
    return listDiagnostics(document);
  }

  /** Sends a request when the server has read the project. Rejects with a message that says what to do. */
  async ask(method: string, params: unknown, waiting: Waiting): Promise<unknown> {
    const { progress } = this.#connection;
    const { youngMs, beginMs } = this.#limits;
    const { signal } = waiting;
    await this.#waitUntilIdle(waiting);
    const wasReady = progress.hasFinished || progress.ageMs > youngMs;
    const answer = await this.#askAgain(method, params, signal);
    const isPartial = progress.isBusy || progress.hasFinished;
    if (wasReady || (!isPartial && !isEmpty(answer))) return answer;
    // Some servers answer from the open files alone while they read the project.
    if (!isPartial) await progress.waitUntilBusy(beginMs, signal);
    await this.#waitUntilIdle(waiting);
    return this.#askAgain(method, params, signal);
  }

  #waitUntilIdle({ signal, onProgress }: Waiting): Promise<void> {
    const { progress } = this.#connection;
    return progress.waitUntilIdle(this.#limits.indexingMs, signal, onProgress);
  }

  /** Repeats a request that the server could not answer because something changed meanwhile. */
  async #askAgain(method: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#askOnce(method, params, signal);
      } catch (error) {
        if (!(error instanceof RepeatableError)) throw error;
        if (attempt === attemptLimit) throw error;
        await sleep(attempt * repeatMs, signal);
      }
    }
  }

  async #askOnce(method: string, params: unknown, signal: AbortSignal): Promise<unknown> {
    const timeout = AbortSignal.timeout(this.#limits.answerMs);
    try {
      return await this.#connection.requestUntil(method, params, AbortSignal.any([signal, timeout]));
    } catch (error) {
      signal.throwIfAborted();
      if (timeout.aborted)
        throw new UserError(
          `${this.#name} did not answer within ${this.#limits.answerMs / 1000} s; it may still be reading the project. Try again later, or use grep.`,
          { cause: error },
        );
      throw this.#explain(error);
    }
  }

  #explain(error: unknown): unknown {
    const answer = errorAnswerSchema.safeParse(error).data;
    if (answer === undefined) return error;
    const text = `${this.#name} answered with an error: ${excerpt(answer.message, errorLimit)}`;
    return repeatableCodes.has(answer.code) ? new RepeatableError(text) : new UserError(text);
  }

  /** Returns the open documents whose problems are not known yet. */
  #takeUnchecked(): Document[] {
    const documents = [...this.#unchecked].flatMap((path) => this.#documents.find(path) ?? []);
    this.#unchecked.clear();
    return documents;
  }

  end(): Promise<void> {
    return this.#connection.end();
  }

  /** Restores open documents to the text before the edit, because something else may have changed the files. */
  async #textsBefore(edited: readonly EditedFile[]): Promise<DocumentText[]> {
    const touched = new Set(edited.map(({ path }) => path));
    const others = this.#documents.paths.filter((path) => !touched.has(path));
    const onDisk = others.map(async (path) => ({ path, text: (await this.#read(path)) ?? null }));
    const before = edited.map(({ path, before: text }) => ({ path, text }));
    return [...before, ...(await Promise.all(onDisk))];
  }

  /** Opens, changes and closes documents; returns those that need new diagnostics. */
  async #show(texts: readonly DocumentText[]): Promise<Document[]> {
    const changed: Document[] = [];
    for (const { path, text } of texts) {
      const document = await this.#showOne(path, text);
      if (document !== undefined) changed.push(document);
    }
    return changed;
  }

  async #showOne(path: string, text: string | null): Promise<Document | undefined> {
    const documents = this.#documents;
    const open = documents.find(path);
    if (text === null) {
      if (open !== undefined) await documents.close(open);
      return undefined;
    }
    if (open === undefined) return documents.open(path, text, 1);
    documents.touch(open);
    if (open.text === text) return undefined;
    if (this.#connection.isPulled || this.#reportsVersions) return documents.change(open, text);
    // Without versions, a late report on the old text looks like one on the new text, and some servers report
    // nothing if a
    // change causes no new problems. All servers report on opened documents.
    await documents.close(open);
    await this.#waitForClosed(open);
    return documents.open(path, text, open.version + 1);
  }

  /** Waits briefly for diagnostics of a closed file. */
  async #waitForClosed(closed: Document): Promise<void> {
    this.#closing = closed.path;
    const end = performance.now() + closedReportMs;
    while (this.#closing !== undefined && performance.now() < end) await this.#reports.next(end);
    this.#closing = undefined;
  }

  async #notifySaved(edited: readonly EditedFile[]): Promise<void> {
    const changes = edited.map(({ path, before, after }) => ({
      uri: toUri(path),
      type: fileEvent(before, after),
    }));
    await this.#connection.notify("workspace/didChangeWatchedFiles", { changes });
    const now = Date.now();
    for (const { path, after } of edited) {
      this.#informedAt.set(path, now);
      if (after === null) continue;
      await this.#connection.notify("textDocument/didSave", { textDocument: { uri: toUri(path) } });
    }
  }

  /** Waits until the diagnostics of the documents are complete. */
  async #settle(documents: readonly Document[]): Promise<void> {
    if (documents.length === 0) return;
    if (this.#connection.isPulled) await Promise.all(documents.map((document) => this.#pull(document)));
    else await this.#reports.waitUntilComplete(documents, () => this.#connection.assertAlive());
  }

  async #pull(document: Document): Promise<void> {
    const { uri } = document;
    const params = { textDocument: { uri } };
    const response = await this.#connection.request("textDocument/diagnostic", params, firstReportMs);
    const report = reportSchema.safeParse(response?.answer).data;
    if (report?.items !== undefined) document.pulled = parseDiagnostics(report.items);
  }

  /** Remembers problems that exist before an edit. */
  #rememberProblems(documents: readonly Document[]): void {
    const paths = new Set(documents.map(({ path }) => path));
    const others = this.#known.filter(({ path }) => !paths.has(path));
    this.#known = [...others, ...documents.flatMap((document) => this.#documents.errorsOf(document))];
  }

  #take(params: unknown): void {
    const report = publicationSchema.safeParse(params).data;
    if (report === undefined) return;
    const path = toPath(report.uri) ?? "";
    if (path === this.#closing) this.#closing = undefined;
    const document = this.#documents.find(path);
    const version = report.version ?? undefined;
    if (version !== undefined) this.#reportsVersions = true;
    if (document !== undefined && (version ?? document.version) >= document.version) {
      document.pushed = parseDiagnostics(report.diagnostics);
      this.#reports.note(document);
    }
    this.#reports.wake();
  }
}

async function startProgram({
  name,
  config,
  root,
  processes,
  confine: confineProgram,
}: LanguageServerDeps): Promise<PipedProcess> {
  const [command = "", ...args] = config.command;
  const { sandbox, env = {} } = config;
  const confine = sandbox
    ? (argv: readonly string[]) => confineProgram(argv, { sandbox, start: root })
    : undefined;
  try {
    return await processes.start({ command, args, cwd: root, env, confine });
  } catch (error) {
    throw new UserError(`The language server ${name} cannot be used: ${messageOf(error)}.`, { cause: error });
  }
}

const publicationSchema = z.looseObject({
  uri: z.string(),
  version: z.number().nullish(),
  diagnostics: z.array(z.unknown()),
});
const reportSchema = z.looseObject({ items: z.array(z.unknown()).optional() });

/** The protocol's FileChangeType. */
function fileEvent(before: string | null, after: string | null): 1 | 2 | 3 {
  if (before === null) return 1;
  return after === null ? 3 : 2;
}

const fileChanged = 2;

/** How often, and after which pause, a request is repeated. */
const attemptLimit = 4;
const repeatMs = 300;
const errorLimit = 300;

/** ContentModified, ServerCancelled, RequestCancelled and ServerNotInitialized. */
const repeatableCodes: ReadonlySet<number> = new Set([-32_801, -32_802, -32_800, -32_002]);
const errorAnswerSchema = z.looseObject({ code: z.number(), message: z.string() });

/** The server could not answer now. */
class RepeatableError extends UserError {}

function isEmpty(answer: unknown): boolean {
  return answer === null || answer === undefined || (Array.isArray(answer) && answer.length === 0);
}
