import { fileURLToPath } from "node:url";
import { z } from "zod";
import { type Document, Documents, listProblems, type DocumentText } from "./documents.ts";
import { messageOf, UserError } from "../base/errors.ts";
import type { PipedProcess, PipedProcesses } from "../workspace/process/piped-process.ts";
import { findNewProblems, type Problem, parseErrors } from "./problems.ts";
import { type quietMs, DiagnosticsWaiter, firstReportMs } from "./reports.ts";
import { ServerConnection, type ServerConnectionDeps, toUri } from "./server-connection.ts";

/** A file before and after an edit; null means "not found". */
export interface EditedFile {
  /** Absolute. */
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
}

export interface LanguageServerDeps extends ServerConnectionDeps {
  readonly processes: PipedProcesses;
  /** Reads a text file; undefined if it does not exist or is not text. */
  readonly read: (path: string) => Promise<string | undefined>;
  /** For tests. */
  readonly quietMs?: typeof quietMs | undefined;
}

/** Time to wait for diagnostics of a closed file, which come at once if at all. */
const closedReportMs = 200;

/** A running language server, which checks edits for new errors. Rejections have a message for the user. */
export class LanguageServer {
  readonly #read: LanguageServerDeps["read"];
  readonly #connection: ServerConnection;
  readonly #documents: Documents;
  readonly #reports: DiagnosticsWaiter;
  /** Problems from before the edits, or already shown to the model. */
  #known: readonly Problem[] = [];
  #reportsVersions = false;
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

  private constructor({ name, config, root, log, read, quietMs }: LanguageServerDeps, program: PipedProcess) {
    this.#read = read;
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
    const before = await this.#show(await this.#textsBefore(edited));
    await this.#settle(before);
    this.#rememberProblems(before);
    const after = await this.#show(edited.map(({ path, after: text }) => ({ path, text })));
    await this.#notifySaved(edited);
    await this.#settle(after);
    await this.#documents.closeOldest();
    return findNewProblems(this.#known, this.#documents.problems);
  }

  /** Marks the current problems as known to the model. */
  accept(): void {
    this.#known = this.#documents.problems;
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
    for (const { path, after } of edited) {
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
    if (report?.items !== undefined) document.pulled = parseErrors(report.items);
  }

  /** Remembers problems that exist before an edit. */
  #rememberProblems(documents: readonly Document[]): void {
    const paths = new Set(documents.map(({ path }) => path));
    const others = this.#known.filter(({ path }) => !paths.has(path));
    this.#known = [...others, ...documents.flatMap(listProblems)];
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
      document.pushed = parseErrors(report.diagnostics);
      this.#reports.note(document);
    }
    this.#reports.wake();
  }
}

async function startProgram({ name, config, root, processes }: LanguageServerDeps): Promise<PipedProcess> {
  const [command = "", ...args] = config.command;
  try {
    return await processes.start({ command, args, cwd: root, env: config.env ?? {} });
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

/** Normalizes a file URI, because servers spell them differently. */
function toPath(uri: string): string | undefined {
  try {
    return fileURLToPath(uri);
  } catch {
    // Not a file URI.
    return undefined;
  }
}
