import { languageOf } from "./languages.ts";
import { type Diagnostic, type Problem, toProblems } from "./problems.ts";
import { type ServerConnection, toUri } from "./server-connection.ts";

/** A text that a server is shown under its path; null is "no such file". */
export interface ShownText {
  readonly path: string;
  readonly text: string | null;
}

/** A text that a server has, and what it said of it. */
export interface Document {
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

const openLimit = 20;

/** The documents that a server has open; the one used last at the end. */
export class Documents {
  readonly #connection: Pick<ServerConnection, "notify">;
  readonly #open = new Map<string, Document>();

  constructor(connection: Pick<ServerConnection, "notify">) {
    this.#connection = connection;
  }

  get paths(): readonly string[] {
    return [...this.#open.keys()];
  }

  get problems(): readonly Problem[] {
    return [...this.#open.values()].flatMap(problemsOf);
  }

  find(path: string): Document | undefined {
    return this.#open.get(path);
  }

  async open(path: string, text: string, version: number): Promise<Document> {
    const uri = toUri(path);
    const document: Document = { path, uri, text, version, pushed: [], pulled: [], ...unreported };
    this.#open.set(path, document);
    const textDocument = { uri, languageId: languageOf(path), version, text };
    await this.#connection.notify("textDocument/didOpen", { textDocument });
    return document;
  }

  async change(document: Document, text: string): Promise<Document> {
    Object.assign(document, { text, version: document.version + 1, ...unreported });
    const { uri, version } = document;
    const params = { textDocument: { uri, version }, contentChanges: [{ text }] };
    await this.#connection.notify("textDocument/didChange", params);
    return document;
  }

  /** Makes it the one used last. */
  touch(document: Document): void {
    this.#open.delete(document.path);
    this.#open.set(document.path, document);
  }

  async close(document: Document): Promise<void> {
    this.#open.delete(document.path);
    await this.#connection.notify("textDocument/didClose", { textDocument: { uri: document.uri } });
  }

  async closeOldest(): Promise<void> {
    const oldest = [...this.#open.values()].slice(0, -openLimit);
    for (const document of oldest) await this.close(document);
  }
}

const unreported = { reportedAt: undefined, isSettled: false };

export function problemsOf({ path, text, pushed, pulled }: Document): Problem[] {
  const problems = [...toProblems(path, text, pushed), ...toProblems(path, text, pulled)];
  const places = new Map(problems.map((problem) => [JSON.stringify(problem), problem]));
  return [...places.values()];
}
