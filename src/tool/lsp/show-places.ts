import type {
  CodeCall,
  CodeLocation,
  CodeProblem,
  CodeSymbol,
  QueryContext,
} from "../../lsp/language-queries.ts";
import { splitLines } from "../../lsp/connection/positions.ts";
import { beginningOf } from "../../base/text/excerpt.ts";
import type { Location } from "../../message/part.ts";
import { formatPath, isInside } from "../../workspace/paths.ts";
import { pathPermissions, resolveToolPath } from "../paths.ts";
import type { RunContext, ToolContext } from "../tool.ts";
import { kindNames } from "./symbol-kinds.ts";

/** Limits of one result. */
const placeLimit = 100;
const symbolLimit = 200;
const characterLimit = 20_000;
const lineLimit = 200;
const hoverLimit = 4_000;
/** Places that the editor can follow. */
const followedPlaces = 20;
/** Files named as left out. */
const namedFiles = 10;

/** A text for the model, with the places in it. */
export interface ShownPlaces {
  readonly text: string;
  readonly count: number;
  readonly locations: readonly Location[];
}

/** Decides which files a result may show, and how their paths are written. */
export interface Viewer {
  readonly context: ToolContext;
  readonly query: QueryContext;
  readonly run: Pick<RunContext, "isAllowed">;
}

/** Lists places by file, with the text of each line where the file may be read without asking. */
export async function showLocations(all: readonly CodeLocation[], viewer: Viewer): Promise<ShownPlaces> {
  const { context } = viewer;
  const { cwd, roots } = context.workspace;
  const files = Map.groupBy(all, ({ path, uri }) => path ?? uri);
  const shown = new BoundedLines(placeLimit);
  const locations: Location[] = [];
  const cutFiles: string[] = [];
  let hidden = 0;
  for (const [file, places] of files) {
    const [first] = places;
    const access = first?.path === undefined ? "address" : await getAccess(first.path, viewer);
    if (access === "hidden") {
      hidden += places.length;
      continue;
    }
    const lines = access === "text" ? splitLines((await viewer.query.read(file)) ?? "") : [];
    const sorted = places.toSorted((one, other) => one.range.start.line - other.range.start.line);
    const texts = sorted.map(({ range: { start } }) => {
      const text = lines[start.line]?.trim() ?? "";
      return `  ${start.line + 1}:${start.character + 1}${text === "" ? "" : `: ${cutLine(text)}`}`;
    });
    const kept = shown.addGroup(`${formatPath(cwd, file)}:`, texts);
    if (kept < texts.length) cutFiles.push(`${formatPath(cwd, file)} (${texts.length - kept})`);
    if (access !== "text" || !isInside(file, roots)) continue;
    for (const { range } of sorted.slice(0, kept)) locations.push({ path: file, line: range.start.line + 1 });
  }
  const notes = [
    ...(cutFiles.length === 0 ? [] : [describeCut(shown.left, cutFiles)]),
    ...(hidden === 0 ? [] : [`[${hidden} places are in files that may not be read without asking.]`]),
  ];
  return {
    text: [shown.text, ...notes].filter((text) => text !== "").join("\n\n"),
    count: all.length,
    locations: locations.slice(0, followedPlaces),
  };
}

function describeCut(left: number, files: readonly string[]): string {
  const named = files.slice(0, namedFiles).join(", ");
  const more = files.length - namedFiles;
  return `[${left} more are left out: ${named}${more > 0 ? ` and ${more} more files` : ""}. Search these files with grep to see them.]`;
}

/** Lists the symbols of a file as a tree. */
export function showFileSymbols(symbols: readonly CodeSymbol[], path: string): ShownPlaces {
  const shown = new BoundedLines(symbolLimit);
  for (const { name, kind, depth, location, container } of symbols) {
    const inside = depth === 0 && container !== "" ? ` (${container})` : "";
    const kindName = kindNames.get(kind) ?? "symbol";
    shown.add(`${"  ".repeat(depth)}${location.range.start.line + 1}: ${kindName} ${cutLine(name)}${inside}`);
  }
  const cut =
    shown.left === 0
      ? []
      : [`[${shown.left} more symbols are left out. Read the file from the last line on.]`];
  return { text: [shown.text, ...cut].join("\n\n"), count: symbols.length, locations: [{ path }] };
}

/** Lists symbols of the workspace, those with the wanted name first. */
export function showSymbols(
  symbols: readonly CodeSymbol[],
  wanted: string,
  { context }: Viewer,
): ShownPlaces {
  const { cwd, roots } = context.workspace;
  const rank = ({ name, location: { path } }: CodeSymbol) =>
    (name === wanted ? 0 : name.toLowerCase().startsWith(wanted.toLowerCase()) ? 1 : 2) +
    (path !== undefined && isInside(path, roots) ? 0 : 3);
  const sorted = symbols.toSorted((one, other) => rank(one) - rank(other));
  const shown = new BoundedLines(placeLimit);
  const locations: Location[] = [];
  for (const { name, kind, container, location } of sorted) {
    const line = location.range.start.line + 1;
    const place = formatPath(cwd, location.path ?? location.uri);
    const inside = container === "" ? "" : ` in ${container}`;
    const isShown = shown.add(
      `${kindNames.get(kind) ?? "symbol"} ${cutLine(name)}${inside}: ${place}:${line}`,
    );
    if (isShown && location.path !== undefined && isInside(location.path, roots))
      locations.push({ path: location.path, line });
  }
  const cut =
    shown.left === 0 ? [] : [`[${shown.left} more symbols are left out. Give a longer name to see fewer.]`];
  const text = [shown.text, ...cut].join("\n\n");
  return { text, count: symbols.length, locations: locations.slice(0, followedPlaces) };
}

/** Lists callers or called functions, with the lines of the calls. */
export function showCalls(calls: readonly CodeCall[], { context }: Viewer): ShownPlaces {
  const { cwd, roots } = context.workspace;
  const shown = new BoundedLines(placeLimit);
  const locations: Location[] = [];
  for (const { name, kind, location, lines } of calls) {
    const line = location.range.start.line + 1;
    const place = formatPath(cwd, location.path ?? location.uri);
    const numbers = [...new Set(lines)].map((number) => number + 1).slice(0, namedFiles);
    const at = numbers.length === 0 ? "" : ` (calls in line ${numbers.join(", ")})`;
    const isShown = shown.add(`${kindNames.get(kind) ?? "symbol"} ${cutLine(name)}: ${place}:${line}${at}`);
    if (isShown && location.path !== undefined && isInside(location.path, roots))
      locations.push({ path: location.path, line });
  }
  const cut = shown.left === 0 ? [] : [`[${shown.left} more are left out. Search with grep to see them.]`];
  return {
    text: [shown.text, ...cut].join("\n\n"),
    count: calls.length,
    locations: locations.slice(0, followedPlaces),
  };
}

export function showProblems(problems: readonly CodeProblem[], path: string): ShownPlaces {
  const shown = new BoundedLines(placeLimit);
  for (const { severity, line, column, message, code } of problems) {
    const text = message.replaceAll(/\s+/g, " ").trim();
    shown.add(`${line}:${column} ${severity}: ${text}${code === "" ? "" : ` (${code})`}`);
  }
  const cut = shown.left === 0 ? [] : [`[${shown.left} more are left out. Fix these first.]`];
  const locations = problems.slice(0, followedPlaces).map(({ line }) => ({ path, line }));
  return { text: [shown.text, ...cut].join("\n\n"), count: problems.length, locations };
}

export function cutHover(text: string): string {
  if (text.length <= hoverLimit) return text;
  return `${beginningOf(text, hoverLimit)}\n\n[${text.length - hoverLimit} more characters are left out. Read the declaration for the rest.]`;
}

/** Whether a file's lines may be shown: outside the workspace, only its name unless the rules allow more. */
async function getAccess(path: string, { context, run }: Viewer): Promise<"text" | "name" | "hidden"> {
  const resolved = await resolveToolPath(context, path).catch(() => undefined);
  if (resolved === undefined) return "hidden";
  if (run.isAllowed(pathPermissions(context, resolved, "read"))) return "text";
  return isInside(resolved.path, context.workspace.roots) ? "hidden" : "name";
}

function cutLine(text: string): string {
  return text.length <= lineLimit ? text : `${beginningOf(text, lineLimit)}…`;
}

/** Lines up to a number and a total length. */
class BoundedLines {
  readonly #limit: number;
  readonly #parts: string[] = [];
  #lines = 0;
  #characters = 0;
  /** Number of lines that were left out. */
  left = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get text(): string {
    return this.#parts.join("\n");
  }

  /** Returns whether the line was added. */
  add(line: string): boolean {
    const isFull = this.#lines >= this.#limit || this.#characters + line.length > characterLimit;
    if (isFull) {
      this.left++;
      return false;
    }
    this.#lines++;
    this.#characters += line.length + 1;
    this.#parts.push(line);
    return true;
  }

  /** Adds lines under a heading, which is added only with the first of them. Returns how many were added. */
  addGroup(heading: string, lines: readonly string[]): number {
    let added = 0;
    for (const line of lines) {
      const head = added === 0 ? `${this.#parts.length === 0 ? "" : "\n"}${heading}\n` : "";
      if (this.add(head + line)) added++;
    }
    return added;
  }
}
