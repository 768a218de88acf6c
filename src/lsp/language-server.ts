import { fileURLToPath } from "node:url";
import { z } from "zod";
import { type Document, Documents, problemsOf, type ShownText } from "./documents.ts";
import { messageOf, UserError } from "../base/errors.ts";
import type { PipedProcess } from "../workspace/process/piped-process.ts";
import { newProblems, type Problem, toErrors } from "./problems.ts";
import { type quietMs, Reports, silenceLimitMs } from "./reports.ts";
import { ServerConnection, type ServerConnectionDeps, toUri } from "./server-connection.ts";

/** A file before and after an edit; null is "no such file". */
export interface EditedFile {
  /** Absolute. */
  readonly path: string;
  readonly before: string | null;
  readonly after: string | null;
}

export interface LanguageServerDeps extends ServerConnectionDeps {
  /** The text of a file on disk; undefined where it is gone or no text. */
  readonly read: (path: string) => Promise<string | undefined>;
  /** For tests. */
  readonly quietMs?: typeof quietMs | undefined;
}

/** What it says when a file is closed comes at once, if it says anything. */
const closingMs = 200;

/**
 * A running language server. It is told of each edit and asked for the errors that came with it. All that rejects
 * does so with a sentence for the person.
 */
export class LanguageServer {
  readonly #read: LanguageServerDeps["read"];
  readonly #connection: ServerConnection;
  readonly #documents: Documents;
  readonly #reports: Reports;
  /** What was there before, or was told to the model. */
  #known: readonly Problem[] = [];
  #reportsVersions = false;
  /** A file that was closed, of which the server may say something yet. */
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
    this.#read = deps.read;
    this.#reports = new Reports(deps.quietMs);
    this.#connection = new ServerConnection(deps, program, {
      onPublished: (params) => this.#take(params),
      onFailed: () => this.#reports.ring(),
    });
    this.#documents = new Documents(this.#connection);
  }

  /**
   * The errors that the edits brought. Tell {@link accept} when the model has got them; else they are found again.
   */
  async check(edited: readonly EditedFile[]): Promise<Problem[]> {
    this.#connection.assertAlive();
    const before = await this.#show(await this.#textsBefore(edited));
    await this.#settle(before);
    this.#learn(before);
    const after = await this.#show(edited.map(({ path, after: text }) => ({ path, text })));
    await this.#tellSaved(edited);
    await this.#settle(after);
    await this.#documents.closeOldest();
    return newProblems(this.#known, this.#documents.problems);
  }

  /** What it reports now is known to the model. */
  accept(): void {
    this.#known = this.#documents.problems;
  }

  end(): Promise<void> {
    return this.#connection.end();
  }

  /** Files that are open must be what they were before the edit, whoever changed them since. */
  async #textsBefore(edited: readonly EditedFile[]): Promise<ShownText[]> {
    const touched = new Set(edited.map(({ path }) => path));
    const others = this.#documents.paths.filter((path) => !touched.has(path));
    const onDisk = others.map(async (path) => ({ path, text: (await this.#read(path)) ?? null }));
    const before = edited.map(({ path, before: text }) => ({ path, text }));
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
    // Without versions nobody could tell a late report on the old text from one on the new; some servers say
    // nothing at all where a change brings nothing new. Of what is opened every server reports.
    await documents.close(open);
    await this.#reportOf(open);
    return documents.open(path, text, open.version + 1);
  }

  /** Waits a moment for what a server says of a file that was closed. */
  async #reportOf(closed: Document): Promise<void> {
    this.#closing = closed.path;
    const end = performance.now() + closingMs;
    while (this.#closing !== undefined && performance.now() < end) await this.#reports.next(end);
    this.#closing = undefined;
  }

  async #tellSaved(edited: readonly EditedFile[]): Promise<void> {
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

  /** Waits until the server has said what it thinks of the documents. */
  async #settle(documents: readonly Document[]): Promise<void> {
    if (documents.length === 0) return;
    if (this.#connection.isPulled) await Promise.all(documents.map((document) => this.#pull(document)));
    else await this.#reports.complete(documents, () => this.#connection.assertAlive());
  }

  async #pull(document: Document): Promise<void> {
    const { uri } = document;
    const params = { textDocument: { uri } };
    const asked = await this.#connection.request("textDocument/diagnostic", params, silenceLimitMs);
    const report = reportSchema.safeParse(asked?.answer).data;
    if (report?.items !== undefined) document.pulled = toErrors(report.items);
  }

  /** What is wrong in these documents before an edit is none of its doing. */
  #learn(documents: readonly Document[]): void {
    const paths = new Set(documents.map(({ path }) => path));
    const others = this.#known.filter(({ path }) => !paths.has(path));
    this.#known = [...others, ...documents.flatMap(problemsOf)];
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
      document.pushed = toErrors(report.diagnostics);
      this.#reports.note(document);
    }
    this.#reports.ring();
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

/** Servers write the same address in different ways. */
function toPath(uri: string): string | undefined {
  try {
    return fileURLToPath(uri);
  } catch {
    // Not a file's: of no document that we have.
    return undefined;
  }
}
