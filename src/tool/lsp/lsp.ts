import { shortenTitle } from "../../base/text/call-titles.ts";
import { z } from "zod";
import description from "../../../prompts/tools/lsp.md";
import type { Answer, LanguageQueries, QueryContext } from "../../lsp/language-queries.ts";
import type { PermissionRequest } from "../../permission/rule.ts";
import type { ResolvedPath } from "../../workspace/paths.ts";
import { isInside } from "../../workspace/paths.ts";
import { getOutsideAccess, otherNamesOfPath, pathPermissions, resolvePathToRead, titleOf } from "../paths.ts";
import { assertSameTarget } from "../text-file.ts";
import {
  appendNotes,
  defineTool,
  type RunContext,
  type Tool,
  type ToolContext,
  ToolFailure,
} from "../tool.ts";
import type { ToolResult } from "../tool.ts";
import { findInFile, findInWorkspace, type FoundPlace, nameAt } from "./code-place.ts";
import { createQueryContext, createReader, explainServerErrors } from "./code-reader.ts";
import {
  cutHover,
  showCalls,
  showFileSymbols,
  showLocations,
  type ShownPlaces,
  showProblems,
  showSymbols,
  type Viewer,
} from "./show-places.ts";

const operations = [
  "goToDefinition",
  "findReferences",
  "goToImplementation",
  "hover",
  "documentSymbol",
  "workspaceSymbol",
  "incomingCalls",
  "outgoingCalls",
  "diagnostics",
] as const;
type Operation = (typeof operations)[number];

const nameLimit = 500;

const inputSchema = z.object({
  operation: z.enum(operations),
  filePath: z.string().optional().describe("The file"),
  symbol: z.string().min(1).max(nameLimit).optional().describe("A name in it, or Class.name"),
  line: z.number().int().positive().optional().describe("From 1"),
  character: z.number().int().positive().optional().describe("Column, from 1"),
});
type Input = z.infer<typeof inputSchema>;

/** Other names of a symbol and its place. */
export const placeAliases = {
  symbol: ["name", "query", "symbol_name", "identifier", "name_path", "old_name"],
  line: ["line_number", "row", "start_line"],
  character: ["column", "col", "char", "offset"],
} as const;

/** Answers questions about code by language servers. */
export function lspTool(queries: LanguageQueries): Tool {
  return defineTool<Input>({
    name: "lsp",
    otherNames: ["language_server", "code_intelligence", "lsp_tool", "code_navigation"],
    aliases: {
      operation: ["action", "method", "command", "type"],
      filePath: otherNamesOfPath,
      ...placeAliases,
    },
    description,
    input: inputSchema,
    kind: "search",
    concurrency: "shared",
    access: async (input, context) =>
      input.filePath === undefined
        ? undefined
        : getOutsideAccess(context, [input.filePath], {
            title: describeCall(input, input.symbol ?? input.filePath),
            permission: "read",
            own: () => [operationRequest(input.operation)],
          }),
    prepare: async (given, context) => {
      const { operation, filePath } = given;
      if (operation === "workspaceSymbol" && given.symbol === undefined)
        throw new ToolFailure("workspaceSymbol needs symbol: a name or the beginning of one.");
      if (filePath === undefined) return prepareByName(queries, given, context);
      const { resolved, lines, note } = await resolvePathToRead(context, filePath);
      if (resolved.kind !== "file")
        throw new ToolFailure(`${filePath} is a folder. Give the path of a file.`);
      const input = { ...given, line: given.line ?? lines?.first };
      const title = titleOf(context, resolved);
      return {
        title: describeCall(input, await subjectOf(input, resolved, context)),
        locations: [{ path: resolved.path, ...(input.line !== undefined && { line: input.line }) }],
        permissions: [operationRequest(operation), ...pathPermissions(context, resolved, "read")],
        run: (run) =>
          runQuery(context, run, async (query, viewer) => {
            await assertSameTarget(context.workspace, resolved.path);
            const file = { path: resolved.path, title };
            const result = await askAboutFile({ queries, input, query, viewer }, file);
            return note === undefined ? result : { ...result, notes: appendNotes(note, result.notes) };
          }),
      };
    },
  });
}

function prepareByName(queries: LanguageQueries, input: Input, context: ToolContext) {
  const { operation, symbol } = input;
  if (operation === "documentSymbol" || operation === "diagnostics")
    throw new ToolFailure(`${operation} needs filePath: the file to look at.`);
  if (symbol === undefined) throw new ToolFailure(`${operation} needs filePath and symbol, or symbol alone.`);
  return {
    title: describeCall(input, symbol),
    locations: [],
    permissions: [operationRequest(operation)],
    run: (run: RunContext) =>
      runQuery(context, run, async (query, viewer) => {
        if (operation === "workspaceSymbol")
          return toResult(await queries.symbolsNamed(symbol, undefined, query), (found) =>
            showSymbols(found, symbol, viewer),
          );
        const place = await findInWorkspace(symbol, queries, query, context);
        return askAboutPlace({ queries, input, query, viewer }, place);
      }),
  };
}

interface Asking {
  readonly queries: LanguageQueries;
  readonly input: Input;
  readonly query: QueryContext;
  readonly viewer: Viewer;
}

type Completed = Extract<ToolResult, { status: "completed" }>;

function runQuery(
  context: ToolContext,
  run: RunContext,
  task: (query: QueryContext, viewer: Viewer) => Promise<Completed>,
): Promise<ToolResult> {
  const query = createQueryContext(context, run);
  return explainServerErrors(() => task(query, { context, query, run }));
}

async function askAboutFile(
  asking: Asking,
  { path, title }: { path: string; title: string },
): Promise<Completed> {
  const { queries, query, viewer, input } = asking;
  switch (input.operation) {
    case "documentSymbol":
      return toResult(await queries.symbolsOf(path, query), (found) => showFileSymbols(found, path));
    case "workspaceSymbol":
      return toResult(await queries.symbolsNamed(input.symbol ?? "", path, query), (found) =>
        showSymbols(found, input.symbol ?? "", viewer),
      );
    case "diagnostics": {
      const { value, ...answer } = await queries.problemsOf(path, query);
      if (value === undefined)
        throw new ToolFailure(
          `${answer.server} has not reported on ${title} in time. Try again later, or run the project's own check.`,
        );
      return toResult(
        { ...answer, value },
        (found) => showProblems(found, path),
        `No errors or warnings in ${title}.`,
      );
    }
    default: {
      const text = await query.read(path);
      if (text === undefined)
        throw new ToolFailure(`${title} is not text, or too long for a language server. Use grep instead.`);
      return askAboutPlace(asking, await findInFile({ path, title, text }, input, queries, query));
    }
  }
}

async function askAboutPlace(asking: Asking, place: FoundPlace): Promise<Completed> {
  const result = await askAtPosition(asking, place);
  return place.note === "" ? result : { ...result, notes: appendNotes(place.note, result.notes) };
}

async function askAtPosition(
  { queries, input: { operation }, query, viewer }: Asking,
  { path, position }: FoundPlace,
): Promise<Completed> {
  const show = (kind: "definition" | "implementation" | "references") => async () => {
    const answer = await queries.locations(kind, path, position, query);
    const shown = await showLocations(answer.value, viewer);
    return toResult(answer, () => shown);
  };
  switch (operation) {
    case "goToDefinition":
      return show("definition")();
    case "goToImplementation":
      return show("implementation")();
    case "findReferences":
      return show("references")();
    case "incomingCalls":
    case "outgoingCalls": {
      const direction = operation === "incomingCalls" ? "incoming" : "outgoing";
      const answer = await queries.calls(direction, path, position, query);
      return toResult(answer, (calls) => showCalls(calls, viewer));
    }
    default: {
      const answer = await queries.hover(path, position, query);
      return toResult(answer, (text) => ({
        text: cutHover(text),
        count: text === "" ? 0 : 1,
        locations: [],
      }));
    }
  }
}

function toResult<T>(
  { value, server, note }: Answer<T>,
  show: (value: T) => ShownPlaces,
  none = `${server} found nothing there. Check the place with read, or use grep.`,
): Completed {
  const { text, count, locations } = show(value);
  return {
    status: "completed",
    output: count === 0 ? none : text,
    ...(note !== "" && { notes: note }),
    ...(locations.length > 0 && { locations }),
    metadata: { count, server },
  };
}

function operationRequest(operation: Operation): PermissionRequest {
  return { permission: "lsp", subjects: [{ text: operation }], always: ["*"] };
}

/** The name that a call is about, for its title. */
async function subjectOf(
  { operation, symbol, line, character }: Input,
  resolved: ResolvedPath,
  context: ToolContext,
): Promise<string> {
  const title = titleOf(context, resolved);
  if (operation === "documentSymbol" || operation === "diagnostics") return title;
  if (symbol !== undefined) return symbol;
  const isReadable = isInside(resolved.path, context.workspace.roots);
  const text = isReadable ? await createReader(context)(resolved.path) : undefined;
  const name = text === undefined ? "" : nameAt(text, line ?? 1, character ?? 1);
  return name === "" ? `${title}:${line ?? 1}` : name;
}

function describeCall(input: Pick<Input, "operation">, subject: string): string {
  return shortenTitle(describeOperation(input, subject));
}

function describeOperation({ operation }: Pick<Input, "operation">, subject: string): string {
  const name = `\`${subject}\``;
  switch (operation) {
    case "goToDefinition":
      return `Go to definition of ${name}`;
    case "findReferences":
      return `Find references to ${name}`;
    case "goToImplementation":
      return `Find implementations of ${name}`;
    case "hover":
      return `Show type of ${name}`;
    case "documentSymbol":
      return `List symbols of ${subject}`;
    case "workspaceSymbol":
      return `Find symbols named ${name}`;
    case "incomingCalls":
      return `Find callers of ${name}`;
    case "outgoingCalls":
      return `Find calls in ${name}`;
    case "diagnostics":
      return `Check ${subject} for errors`;
  }
}
