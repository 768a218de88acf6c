import { stat } from "node:fs/promises";
import { extname } from "node:path";
import { UserError } from "../base/errors.ts";
import type { LanguageServer, ReadText, Waiting } from "./language-server.ts";
import type { LanguageServers, ServerFolders } from "./language-servers.ts";
import { servesFile } from "./servers/languages.ts";
import {
  fromServerRange,
  type Position,
  type PositionEncoding,
  type Range,
  splitLines,
  toServerColumn,
} from "./connection/positions.ts";
import { type Diagnostic, errorSeverity, toProblems } from "./problems.ts";
import type { ServerChoice } from "./servers/select-servers.ts";
import {
  type EditStep,
  parseCallItems,
  parseCalls,
  parseHover,
  parseLocations,
  parseSymbols,
  parseWorkspaceEdit,
  type ServerLocation,
  toPath,
} from "./server-answers.ts";
import { toUri } from "./connection/server-connection.ts";

/** A server that may run, with a file of the project that it serves. */
export type QueryServer = Pick<ServerChoice, "name" | "config" | "sample">;

export interface LanguageQueriesDeps {
  readonly folders: ServerFolders;
  readonly choices: readonly QueryServer[];
  servers(): Promise<LanguageServers>;
}

/** How a query reads files and waits. */
export interface QueryContext extends Waiting {
  /** Reads the current text of a file, with unsaved changes of the editor. */
  readonly read: ReadText;
}

/** An answer with the server that gave it. */
export interface Answer<T> {
  readonly value: T;
  readonly server: string;
  /** Why the answer may be incomplete; empty if it is complete. */
  readonly note: string;
}

/** A place with columns in UTF-16 units. `path` is undefined for addresses that are not files. */
export interface CodeLocation {
  readonly path: string | undefined;
  readonly uri: string;
  readonly range: Range;
}

export interface CodeSymbol {
  readonly name: string;
  /** The protocol's SymbolKind. */
  readonly kind: number;
  /** Name of the symbol that contains it; empty if there is none. */
  readonly container: string;
  readonly depth: number;
  readonly location: CodeLocation;
  /** Whether the location is that of the name, not of the whole declaration. */
  readonly isNamePlace: boolean;
}

export interface CodeCall {
  readonly name: string;
  readonly kind: number;
  readonly location: CodeLocation;
  /** Lines of the calls, from 0. */
  readonly lines: readonly number[];
}

export interface CodeProblem {
  readonly severity: "error" | "warning";
  /** From 1. */
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly code: string;
}

export type LocationQuery = "definition" | "implementation" | "references";

/** Maximum number of functions of one name whose calls are asked for. */
const callItemLimit = 5;
/** Maximum number of files whose times are compared to find outdated answers. */
const comparedFiles = 100;

/** Questions about code, answered by the language servers of a project. Rejections have a message for the model. */
export class LanguageQueries {
  readonly #deps: LanguageQueriesDeps;

  constructor(deps: LanguageQueriesDeps) {
    this.#deps = deps;
  }

  async locations(
    query: LocationQuery,
    path: string,
    position: Position,
    context: QueryContext,
  ): Promise<Answer<readonly CodeLocation[]>> {
    const method = `textDocument/${query}`;
    return this.#ofFile(path, method, context, async (server) => {
      const extra = query === "references" ? { context: { includeDeclaration: true } } : {};
      const params = { ...this.#at(server, path, position), ...extra };
      const ask = async () => parseLocations(await server.ask(method, params, context));
      const found = await ask();
      const current = (await this.#reportChanges(server, found)) ? await ask() : found;
      return Promise.all(current.map((location) => convert(location, server.encoding, context.read)));
    });
  }

  async hover(path: string, position: Position, context: QueryContext): Promise<Answer<string>> {
    return this.#ofFile(path, "textDocument/hover", context, async (server) =>
      parseHover(await server.ask("textDocument/hover", this.#at(server, path, position), context)),
    );
  }

  async symbolsOf(path: string, context: QueryContext): Promise<Answer<readonly CodeSymbol[]>> {
    const method = "textDocument/documentSymbol";
    return this.#ofFile(path, method, context, async (server) => {
      const uri = toUri(path);
      const answer = await server.ask(method, { textDocument: { uri } }, context);
      return this.#toSymbols(answer, uri, server, context);
    });
  }

  /** Asks each server that serves the file, or all servers. */
  async symbolsNamed(
    query: string,
    path: string | undefined,
    context: QueryContext,
  ): Promise<Answer<readonly CodeSymbol[]>> {
    const method = "workspace/symbol";
    const asked =
      path === undefined
        ? this.#deps.choices.filter(({ sample }) => sample !== undefined)
        : this.#serving(path);
    const answers: Answer<readonly CodeSymbol[]>[] = [];
    const problems: UserError[] = [];
    for (const choice of asked) {
      const opened = path ?? choice.sample ?? "";
      try {
        const answer = await this.#run(choice, method, context, async (server) => {
          // Some servers read a project only when one of its files is open.
          if (path !== undefined || !server.hasOpenFiles) await server.refresh([opened], context.read);
          return this.#toSymbols(await server.ask(method, { query }, context), undefined, server, context);
        });
        if (answer !== undefined) answers.push(answer);
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        problems.push(error);
      }
    }
    const [problem] = problems;
    if (answers.length === 0) throw problem ?? unsupported(asked, method);
    return {
      value: answers.flatMap(({ value }) => value),
      server: answers.map(({ server }) => server).join(", "),
      note: [...answers.map(({ note }) => note), ...problems.map(({ message }) => message)]
        .filter((text) => text !== "")
        .join(" "),
    };
  }

  async calls(
    direction: "incoming" | "outgoing",
    path: string,
    position: Position,
    context: QueryContext,
  ): Promise<Answer<readonly CodeCall[]>> {
    const method = "textDocument/prepareCallHierarchy";
    return this.#ofFile(path, method, context, async (server) => {
      const items = parseCallItems(await server.ask(method, this.#at(server, path, position), context));
      const found: CodeCall[] = [];
      for (const item of items.slice(0, callItemLimit)) {
        const answer = await server.ask(`callHierarchy/${direction}Calls`, { item }, context);
        for (const call of parseCalls(answer, direction === "incoming" ? "from" : "to")) {
          const place = { uri: call.uri, range: call.nameRange };
          const location = await convert(place, server.encoding, context.read);
          found.push({ ...call, location, lines: call.calls.map(({ start }) => start.line) });
        }
      }
      return found;
    });
  }

  /** Errors and warnings of a file, of all its servers. Undefined if none of them reports in time. */
  async problemsOf(path: string, context: QueryContext): Promise<Answer<readonly CodeProblem[] | undefined>> {
    const answers: Answer<readonly CodeProblem[] | undefined>[] = [];
    for (const choice of this.#requireServing(path)) {
      const answer = await this.#run(choice, undefined, context, async (server) => {
        await this.#show(server, path, context.read);
        const found = await server.diagnosticsOf(path);
        return found && toCodeProblems(path, server.textOf(path) ?? "", found, server.encoding);
      });
      if (answer !== undefined) answers.push(answer);
    }
    const reports = answers.flatMap(({ value }) => (value === undefined ? [] : [value]));
    return {
      value: reports.length === 0 ? undefined : reports.flat(),
      server: answers.map(({ server }) => server).join(", "),
      note: answers
        .map(({ note }) => note)
        .filter((text) => text !== "")
        .join(" "),
    };
  }

  /** Returns the edits that rename a symbol, for the texts that `read` returns. Columns are UTF-16 units. */
  async rename(
    path: string,
    position: Position,
    newName: string,
    context: QueryContext,
  ): Promise<Answer<readonly EditStep[]>> {
    const method = "textDocument/rename";
    return this.#ofFile(path, method, context, async (server, name) => {
      const params = { ...this.#at(server, path, position), newName };
      if (await server.supports("textDocument/prepareRename")) {
        const place = await server.ask(
          "textDocument/prepareRename",
          this.#at(server, path, position),
          context,
        );
        if (place === null) throw new UserError(`${name} says that nothing there can be renamed.`);
      }
      const ask = async () => {
        const steps = parseWorkspaceEdit(await server.ask(method, params, context));
        if (steps === undefined) throw new UserError(`${name} sent an invalid edit. Nothing was changed.`);
        return steps;
      };
      const steps = await ask();
      const current = (await this.#showEdited(server, steps, context.read)) ? await ask() : steps;
      return Promise.all(current.map((step) => convertStep(step, server.encoding, context.read)));
    });
  }

  /** Asks the first server of the file that supports the method. */
  async #ofFile<T>(
    path: string,
    method: string,
    context: QueryContext,
    ask: (server: LanguageServer, name: string) => Promise<T>,
  ): Promise<Answer<T>> {
    const serving = this.#requireServing(path);
    for (const choice of serving) {
      const answer = await this.#run(choice, method, context, async (server) => {
        await this.#show(server, path, context.read);
        return ask(server, choice.name);
      });
      if (answer !== undefined) return answer;
    }
    throw unsupported(serving, method);
  }

  /** Runs a task with a server; undefined if it does not support the method. */
  async #run<T>(
    choice: QueryServer,
    method: string | undefined,
    { signal }: QueryContext,
    task: (server: LanguageServer) => Promise<T>,
  ): Promise<Answer<T> | undefined> {
    const { name, config } = choice;
    const servers = await this.#deps.servers();
    return servers.use(
      { name, config, folders: this.#deps.folders },
      async (server) => {
        if (method !== undefined && !(await server.supports(method))) return undefined;
        try {
          const value = await task(server);
          const busy = server.busyWith;
          const note = busy === "" ? "" : `${name} is still busy (${busy}), so this may be incomplete.`;
          return { value, server: name, note };
        } finally {
          if (server.isAlive) await server.closeOldest();
        }
      },
      signal,
    );
  }

  #serving(path: string): QueryServer[] {
    return this.#deps.choices.filter(({ name, config }) => servesFile(name, config.extensions, path));
  }

  #requireServing(path: string): QueryServer[] {
    const serving = this.#serving(path);
    if (serving.length > 0) return serving;
    const names = this.#deps.choices.map(({ name }) => name).join(", ");
    const kind = extname(path) || "such";
    throw new UserError(
      `No language server serves ${kind} files here (there are: ${names}). Use grep and read instead.`,
    );
  }

  async #show(server: LanguageServer, path: string, read: ReadText): Promise<void> {
    await server.refresh([path], read);
    if (server.textOf(path) === undefined)
      throw new UserError(
        `${path} cannot be shown to a language server: it is not text, or too long. Use grep instead.`,
      );
  }

  #at(server: LanguageServer, path: string, { line, character }: Position) {
    const text = splitLines(server.textOf(path) ?? "")[line] ?? "";
    return {
      textDocument: { uri: toUri(path) },
      position: { line, character: toServerColumn(text, character, server.encoding) },
    };
  }

  /** Reports files of an answer that changed after the server's start. Returns whether there are any. */
  async #reportChanges(server: LanguageServer, found: readonly ServerLocation[]): Promise<boolean> {
    const paths = [...new Set(found.flatMap(({ uri }) => toPath(uri) ?? []))]
      .filter((path) => server.textOf(path) === undefined)
      .slice(0, comparedFiles);
    const times = await Promise.all(paths.map((path) => stat(path).catch(() => undefined)));
    const changed = paths.filter((path, index) => server.isOutdated(path, times[index]?.mtimeMs));
    if (changed.length > 0) await server.notifyChanged(changed);
    return changed.length > 0;
  }

  /**
   * Shows the files that an edit changes, because the server may have read other texts from the disk. Returns whether
   * one of them differs.
   */
  async #showEdited(server: LanguageServer, steps: readonly EditStep[], read: ReadText): Promise<boolean> {
    const paths = steps.flatMap((step) => (step.type === "edit" ? (toPath(step.uri) ?? []) : []));
    const closed = [...new Set(paths)].filter((path) => server.textOf(path) === undefined);
    await server.refresh(closed, read);
    const { readText } = await this.#deps.servers();
    const onDisk = await Promise.all(closed.map((path) => readText(path)));
    const isOutdated = await this.#reportChanges(
      server,
      steps.flatMap(({ uri }) => ({ uri, range: noRange })),
    );
    return isOutdated || closed.some((path, index) => server.textOf(path) !== onDisk[index]);
  }

  async #toSymbols(
    answer: unknown,
    uri: string | undefined,
    { encoding }: LanguageServer,
    { read }: QueryContext,
  ): Promise<CodeSymbol[]> {
    const symbols = parseSymbols(answer).flatMap((symbol) => {
      const place = symbol.uri ?? uri;
      return place === undefined ? [] : [{ symbol, place }];
    });
    return Promise.all(
      symbols.map(async ({ symbol, place }) => {
        const { name, kind, container, depth, range, nameRange } = symbol;
        const location = await convert({ uri: place, range: nameRange ?? range }, encoding, read);
        return { name, kind, container, depth, location, isNamePlace: nameRange !== undefined };
      }),
    );
  }
}

const noRange: Range = { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } };

const methodNames: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "textDocument/definition": "going to definitions",
    "textDocument/implementation": "finding implementations",
    "textDocument/references": "finding references",
    "textDocument/hover": "hover",
    "textDocument/documentSymbol": "symbols of a file",
    "workspace/symbol": "symbols of the workspace",
    "textDocument/prepareCallHierarchy": "calls",
    "textDocument/rename": "renaming",
  }),
);

function unsupported(servers: readonly QueryServer[], method: string): UserError {
  const names = servers.map(({ name }) => name).join(", ");
  return new UserError(
    `${names} does not support ${methodNames.get(method) ?? method}. Use grep and read instead.`,
  );
}

/** Reads the file only if the server counts columns in another unit. */
async function convert(
  { uri, range }: ServerLocation,
  encoding: PositionEncoding,
  read: ReadText,
): Promise<CodeLocation> {
  const path = toPath(uri);
  if (encoding === "utf-16" || path === undefined) return { path, uri, range };
  const lines = splitLines((await read(path)) ?? "");
  return { path, uri, range: fromServerRange(range, lines, encoding) };
}

async function convertStep(step: EditStep, encoding: PositionEncoding, read: ReadText): Promise<EditStep> {
  const path = toPath(step.uri);
  if (step.type !== "edit" || encoding === "utf-16" || path === undefined) return step;
  const lines = splitLines((await read(path)) ?? "");
  const edits = step.edits.map((edit) => ({ ...edit, range: fromServerRange(edit.range, lines, encoding) }));
  return { ...step, edits };
}

function toCodeProblems(
  path: string,
  text: string,
  found: readonly Diagnostic[],
  encoding: PositionEncoding,
): CodeProblem[] {
  const sorted = found.toSorted(
    (one, other) => one.severity - other.severity || one.range.start.line - other.range.start.line,
  );
  return toProblems(path, text, sorted, encoding).map(({ line, column, message, code }, index) => ({
    severity: sorted[index]?.severity === errorSeverity ? "error" : "warning",
    line,
    column,
    message,
    code,
  }));
}
