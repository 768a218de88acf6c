import { getLanguageId } from "./servers/languages.ts";
import { type Diagnostic, errorSeverity, type Problem, toProblems } from "./problems.ts";
import { type ServerConnection, toUri } from "./connection/server-connection.ts";

/** Text of a document to show to the server; null means "not found". */
export interface DocumentText {
  readonly path: string;
  readonly text: string | null;
}

/** A document in the server, with its diagnostics. */
export interface Document {
  readonly path: string;
  readonly uri: string;
  text: string;
  version: number;
  /** Time of the last diagnostics for this text. */
  reportedAt: number | undefined;
  /** Whether the diagnostics count as complete. */
  isSettled: boolean;
  pushed: readonly Diagnostic[];
  pulled: readonly Diagnostic[];
}

const openLimit = 20;

/** The open documents, least recently used first. */
export class Documents {
  readonly #connection: Pick<ServerConnection, "notify" | "encoding">;
  readonly #open = new Map<string, Document>();

  constructor(connection: Pick<ServerConnection, "notify" | "encoding">) {
    this.#connection = connection;
  }

  get paths(): readonly string[] {
    return [...this.#open.keys()];
  }

  /** The errors of all open documents. */
  get errors(): readonly Problem[] {
    return [...this.#open.values()].flatMap((document) => this.errorsOf(document));
  }

  errorsOf(document: Document): readonly Problem[] {
    const errors = listDiagnostics(document).filter(({ severity }) => severity === errorSeverity);
    return toProblems(document.path, document.text, errors, this.#connection.encoding);
  }

  find(path: string): Document | undefined {
    return this.#open.get(path);
  }

  async open(path: string, text: string, version: number): Promise<Document> {
    const uri = toUri(path);
    const document: Document = { path, uri, text, version, pushed: [], pulled: [], ...unreported };
    this.#open.set(path, document);
    const textDocument = { uri, languageId: getLanguageId(path), version, text };
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

  /** Marks the document as most recently used. */
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

/** The diagnostics of a document, without duplicates. */
export function listDiagnostics({ pushed, pulled }: Pick<Document, "pushed" | "pulled">): Diagnostic[] {
  return [...new Map([...pushed, ...pulled].map((one) => [JSON.stringify(one), one])).values()];
}
