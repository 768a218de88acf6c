import type { CodeSymbol, LanguageQueries, QueryContext } from "../../lsp/language-queries.ts";
import { type Position, splitLines } from "../../lsp/connection/positions.ts";
import { formatPath } from "../../workspace/paths.ts";
import { type ToolContext, ToolFailure } from "../tool.ts";
import { kindNames } from "./symbol-kinds.ts";

/** Where the model says that a symbol is. `line` and `character` count from 1. */
export interface NamedPlace {
  readonly line?: number | undefined;
  readonly character?: number | undefined;
  readonly symbol?: string | undefined;
  /** Whether a symbol that is in several lines needs a line. */
  readonly isUnique?: boolean;
}

/** A position in a file. `note` says how it was found, if not as given. */
export interface FoundPlace {
  readonly path: string;
  readonly position: Position;
  readonly note: string;
}

/** Lines above and below the given one in which a name is looked for. */
const nearbyLines = 5;
/** Lines of a declaration in which its name is looked for: attributes may come first. */
const declarationLines = 10;
/** Places named in one message. */
const namedPlaces = 10;
const quoteLimit = 120;

const wordSign = /[\p{L}\p{N}_$]/u;

/** The name at a position; empty if there is none. */
export function nameAt(text: string, line: number, character: number): string {
  const content = splitLines(text)[line - 1] ?? "";
  const [first, end] = findWord(content, character - 1);
  return content.slice(first, end);
}

/** Start and end of the word at a column or directly before it. */
function findWord(line: string, column: number): [number, number] {
  let first = column;
  let end = column;
  while (first > 0 && wordSign.test(line[first - 1] ?? "")) first--;
  while (end < line.length && wordSign.test(line[end] ?? "")) end++;
  return [first, end];
}

/** Finds the position of a symbol in a file. Throws {@link ToolFailure} with what is there instead. */
export async function findInFile(
  { path, title, text }: { path: string; title: string; text: string },
  place: NamedPlace,
  queries: LanguageQueries,
  context: QueryContext,
): Promise<FoundPlace> {
  const { line, symbol, isUnique = false } = place;
  const lines = splitLines(text);
  if (line !== undefined) {
    if (line > lines.length)
      throw new ToolFailure(`${title} has ${lines.length} lines; there is no line ${line}.`);
    return symbol === undefined
      ? { path, position: findAtColumn(lines, line, place.character), note: "" }
      : { path, ...findNearLine(lines, line, symbol, place.character) };
  }
  if (symbol === undefined)
    throw new ToolFailure("Give symbol, the name to look at, or line and character of a place.");
  const { value } = await queries.symbolsOf(path, context).catch(() => ({ value: [] }));
  const declared = value.filter((one) => isNamed(one, symbol));
  const [first, ...others] = declared;
  if (first !== undefined) {
    const rest = listLines(others.map(({ location }) => location.range.start.line));
    if (isUnique && rest !== "")
      throw new ToolFailure(
        severalLines(
          symbol,
          title,
          declared.map(({ location }) => location.range.start.line),
        ),
      );
    const note = rest === "" ? "" : `${symbol} is also declared in line ${rest}: give line for another one.`;
    return { path, position: findName(first, lines), note };
  }
  const [found, ...more] = lines.flatMap((content, index) => {
    const [character] = findColumns(content, symbol);
    return character === undefined ? [] : [{ line: index, character }];
  });
  if (found !== undefined) {
    if (isUnique && more.length > 0)
      throw new ToolFailure(
        severalLines(
          symbol,
          title,
          [found, ...more].map((one) => one.line),
        ),
      );
    const note = more.length === 0 ? "" : `Taken from line ${found.line + 1}, where ${symbol} occurs first.`;
    return { path, position: found, note };
  }
  throw new ToolFailure(
    `${symbol} does not occur in ${title}. Look for it with grep, or leave filePath out.`,
  );
}

function severalLines(symbol: string, title: string, lines: readonly number[]): string {
  return `${symbol} is in several lines of ${title} (${listLines(lines)}). Give line for the one you mean.`;
}

/** Numbers of lines, from 1. */
function listLines(lines: readonly number[]): string {
  const more = lines.length - namedPlaces;
  const named = lines.slice(0, namedPlaces).map((line) => line + 1);
  return `${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Finds a symbol by its name in the workspace. Throws {@link ToolFailure} if there is none or more than one. */
export async function findInWorkspace(
  symbol: string,
  queries: LanguageQueries,
  context: QueryContext,
  { workspace: { cwd } }: Pick<ToolContext, "workspace">,
): Promise<FoundPlace> {
  const found = await findDeclarations(symbol, queries, context);
  const [first, ...others] = found;
  const path = first?.location.path;
  if (first === undefined || path === undefined)
    throw new ToolFailure(`No symbol is named ${symbol}. Give filePath, or look for it with grep.`);
  if (others.length === 0) {
    const text = (await context.read(path)) ?? "";
    return { path, position: findName(first, splitLines(text)), note: "" };
  }
  const shown = found.slice(0, namedPlaces).map((one) => `- ${describeDeclaration(one, cwd)}`);
  const more = found.length - shown.length;
  throw new ToolFailure(
    [
      `${found.length} symbols are named ${symbol}. Give filePath and line of the one you mean:`,
      ...shown,
      ...(more > 0 ? [`- and ${more} more`] : []),
    ].join("\n"),
  );
}

/** The declarations of exactly this name, in files. */
async function findDeclarations(
  symbol: string,
  queries: LanguageQueries,
  context: QueryContext,
): Promise<readonly CodeSymbol[]> {
  const { value } = await queries.symbolsNamed(lastName(symbol), undefined, context);
  const named = value.filter((one) => isNamed(one, symbol) && one.location.path !== undefined);
  const places = new Map(named.map((one) => [`${one.location.path}:${one.location.range.start.line}`, one]));
  return [...places.values()];
}

function describeDeclaration({ kind, container, location }: CodeSymbol, cwd: string): string {
  const inside = container === "" ? "" : ` in ${container}`;
  return `${formatPath(cwd, location.path ?? location.uri)}:${location.range.start.line + 1} (${kindNames.get(kind) ?? "symbol"}${inside})`;
}

/** Whether a symbol has the name, which may begin with the names of what contains it. */
function isNamed({ name, container }: Pick<CodeSymbol, "name" | "container">, wanted: string): boolean {
  const names = splitName(wanted);
  const own = splitName(container === "" ? name : `${container}.${name}`);
  return names.every((part, index) => own.at(index - names.length) === part);
}

/** Splits `Cart.add`, `Cart#add`, `cart::Cart::add` and `Cart/add`, without arguments. */
function splitName(name: string): string[] {
  return name
    .replace(/\(.*$/s, "")
    .split(/\.|#|::|\//)
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function lastName(symbol: string): string {
  return splitName(symbol).at(-1) ?? symbol;
}

/** The position of a declared name, which may be further inside the declaration. */
function findName({ name, location, isNamePlace }: CodeSymbol, lines: readonly string[]): Position {
  const { start } = location.range;
  if (isNamePlace) return start;
  for (let line = start.line; line < start.line + declarationLines; line++) {
    const from = line === start.line ? start.character : 0;
    const column = findColumns(lines[line] ?? "", name).find((one) => one >= from);
    if (column !== undefined) return { line, character: column };
  }
  return start;
}

function findAtColumn(lines: readonly string[], line: number, character: number | undefined): Position {
  const content = lines[line - 1] ?? "";
  const quoted = `line ${line} is: ${content.trim().slice(0, quoteLimit)}`;
  if (character === undefined) throw new ToolFailure(`Give symbol, the name to look at; ${quoted}`);
  const [first, end] = findWord(content, character - 1);
  if (first === end)
    throw new ToolFailure(`There is no name at column ${character}. Give symbol instead; ${quoted}`);
  return { line: line - 1, character: Math.min(character - 1, end - 1) };
}

function findNearLine(
  lines: readonly string[],
  line: number,
  symbol: string,
  character: number | undefined,
): Omit<FoundPlace, "path"> {
  for (let apart = 0; apart <= nearbyLines; apart++) {
    for (const index of new Set([line - 1 - apart, line - 1 + apart])) {
      const columns = findColumns(lines[index] ?? "", symbol);
      const nearest = columns.toSorted(
        (one, other) => Math.abs(one - (character ?? 0)) - Math.abs(other - (character ?? 0)),
      )[0];
      if (nearest === undefined) continue;
      const note = apart === 0 ? "" : `${symbol} is not in line ${line}; taken from line ${index + 1}.`;
      return { position: { line: index, character: nearest }, note };
    }
  }
  const content = lines[line - 1]?.trim().slice(0, quoteLimit) ?? "";
  throw new ToolFailure(
    `${symbol} is not in line ${line} nor near it. Leave line out, or give the right one; line ${line} is: ${content}`,
  );
}

/** Columns at which the last part of a name occurs as a word. */
function findColumns(line: string, symbol: string): number[] {
  const name = lastName(symbol);
  const columns: number[] = [];
  if (name === "") return columns;
  for (let at = line.indexOf(name); at !== -1; at = line.indexOf(name, at + 1)) {
    const isWord = !wordSign.test(line[at - 1] ?? "") && !wordSign.test(line[at + name.length] ?? "");
    if (isWord) columns.push(at);
  }
  return columns;
}
