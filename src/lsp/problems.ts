import { isAbsolute, relative } from "node:path";
import { z } from "zod";
import { excerpt } from "../base/text/excerpt.ts";
import { isInside } from "../workspace/paths.ts";
import { fromServerColumn, type PositionEncoding, splitLines } from "./connection/positions.ts";

/** An error of a language server with the text of its line, which identifies it when lines move. */
export interface Problem {
  /** Absolute. */
  readonly path: string;
  /** Both count from 1. */
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly code: string;
  readonly lineText: string;
}

export const errorSeverity = 1;
const warningSeverity = 2;
/**
 * Maximum lengths of a message, code and line text; maximum number of errors (and of warnings) per file, and of
 * errors shown to the model at once.
 */
const messageLimit = 500;
const codeLimit = 100;
const lineLimit = 500;
const problemsLimit = 200;
const shownLimit = 20;

const positionSchema = z.object({ line: z.number(), character: z.number() });
/** The used part of the protocol's Diagnostic. Without a severity it counts as an error. */
const diagnosticSchema = z.object({
  range: z.object({ start: positionSchema }),
  severity: z
    .number()
    .nullish()
    .transform((severity) => severity ?? errorSeverity),
  code: z
    .union([z.string(), z.number()])
    .nullish()
    .catch(undefined)
    .transform((code) => excerpt(String(code ?? ""), codeLimit)),
  message: z
    .string()
    .catch("")
    .transform((message) => excerpt(message, messageLimit)),
});
export type Diagnostic = z.infer<typeof diagnosticSchema>;

/** Picks the valid errors and warnings from a server's diagnostics, each up to the limit. */
export function parseDiagnostics(values: readonly unknown[]): Diagnostic[] {
  const found: Diagnostic[] = [];
  const counts = new Map<number, number>();
  for (const value of values) {
    const diagnostic = diagnosticSchema.safeParse(value).data;
    if (diagnostic === undefined || diagnostic.severity > warningSeverity) continue;
    const count = (counts.get(diagnostic.severity) ?? 0) + 1;
    counts.set(diagnostic.severity, count);
    if (count <= problemsLimit) found.push(diagnostic);
  }
  return found;
}

/** Adds the line texts to diagnostics. */
export function toProblems(
  path: string,
  text: string,
  diagnostics: readonly Diagnostic[],
  encoding: PositionEncoding,
): Problem[] {
  if (diagnostics.length === 0) return [];
  const lines = splitLines(text);
  return diagnostics.map(({ range: { start }, code, message }) => ({
    path,
    line: start.line + 1,
    column: fromServerColumn(lines[start.line] ?? "", start.character, encoding) + 1,
    message,
    code,
    lineText: lines[start.line]?.trim().slice(0, lineLimit) ?? "",
  }));
}

/** Returns problems of `now` that are not in `before`, ignoring line numbers, because edits move lines. */
export function findNewProblems(before: readonly Problem[], now: readonly Problem[]): Problem[] {
  const moved = removeKnown(now, before, ({ path, message, code, lineText }) =>
    JSON.stringify([path, code, message, lineText]),
  );
  const same = ({ path, message, code }: Problem) => JSON.stringify([path, code, message]);
  return removeKnown(moved.left, moved.unmatched, same).left;
}

/** Removes one of `known` for each problem with the same key. */
function removeKnown(
  problems: readonly Problem[],
  known: readonly Problem[],
  keyOf: (problem: Problem) => string,
) {
  const byKey = new Map<string, Problem[]>();
  for (const problem of known) byKey.set(keyOf(problem), [...(byKey.get(keyOf(problem)) ?? []), problem]);
  const left = problems.filter((problem) => byKey.get(keyOf(problem))?.pop() === undefined);
  return { left, unmatched: [...byKey.values()].flat() };
}

/** Formats problems for the model, one line each. */
export function describeProblems(server: string, problems: readonly Problem[], cwd: string): string {
  const shown = problems.slice(0, shownLimit).map((problem) => describeProblem(problem, cwd));
  const more = problems.length - shown.length;
  const rest = more > 0 ? [`… and ${more} more.`] : [];
  return [`${server} reports new errors:`, ...shown, ...rest].join("\n");
}

export function describeProblem({ path, line, column, message, code }: Problem, cwd: string): string {
  const name = isAbsolute(path) && isInside(path, [cwd]) ? relative(cwd, path) : path;
  const text = message.replaceAll(/\s+/g, " ").trim();
  return `${name}:${line}:${column}: ${text}${code === "" ? "" : ` (${code})`}`;
}
