import { isAbsolute, relative } from "node:path";
import { z } from "zod";
import { excerpt } from "../base/text/excerpt.ts";
import { isInside } from "../workspace/paths.ts";

/** An error that a language server reports, with the text of its line, by which it is known again when lines move. */
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

const errorSeverity = 1;
/** Characters of a message, of its code and of the line by which it is known again; errors of one file that are kept, and errors that the model is told at once. */
const messageLimit = 500;
const codeLimit = 100;
const lineLimit = 500;
const problemsLimit = 200;
const toldLimit = 20;

const positionSchema = z.object({ line: z.number(), character: z.number() });
/** As much of the protocol's Diagnostic as is used; without a severity it counts as an error. */
const diagnosticSchema = z.object({
  range: z.object({ start: positionSchema }),
  severity: z.number().nullish(),
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

/** The errors among what a server said of a text, as far as they are what they should be. */
export function toErrors(values: readonly unknown[]): Diagnostic[] {
  const errors: Diagnostic[] = [];
  for (const value of values) {
    const diagnostic = diagnosticSchema.safeParse(value).data;
    if (diagnostic !== undefined && (diagnostic.severity ?? errorSeverity) === errorSeverity)
      errors.push(diagnostic);
    if (errors.length === problemsLimit) break;
  }
  return errors;
}

/** Errors of a text with the lines that they stand in. */
export function toProblems(path: string, text: string, errors: readonly Diagnostic[]): Problem[] {
  if (errors.length === 0) return [];
  const lines = text.split("\n");
  return errors.map(({ range: { start }, code, message }) => ({
    path,
    line: start.line + 1,
    column: start.character + 1,
    message,
    code,
    lineText: lines[start.line]?.trim().slice(0, lineLimit) ?? "",
  }));
}

/** Those of `now` that were not there `before`, wherever they stand: an edit moves lines and changes some. */
export function newProblems(before: readonly Problem[], now: readonly Problem[]): Problem[] {
  const moved = without(now, before, ({ path, message, code, lineText }) =>
    JSON.stringify([path, code, message, lineText]),
  );
  const same = ({ path, message, code }: Problem) => JSON.stringify([path, code, message]);
  return without(moved.left, moved.unmatched, same).left;
}

/** Takes one of `known` off the problems for each that has its key. */
function without(
  problems: readonly Problem[],
  known: readonly Problem[],
  keyOf: (problem: Problem) => string,
) {
  const byKey = new Map<string, Problem[]>();
  for (const problem of known) byKey.set(keyOf(problem), [...(byKey.get(keyOf(problem)) ?? []), problem]);
  const left = problems.filter((problem) => byKey.get(keyOf(problem))?.pop() === undefined);
  return { left, unmatched: [...byKey.values()].flat() };
}

/** For the model, a line each. */
export function describeProblems(server: string, problems: readonly Problem[], cwd: string): string {
  const shown = problems.slice(0, toldLimit).map((problem) => describe(problem, cwd));
  const more = problems.length - shown.length;
  const rest = more > 0 ? [`… and ${more} more.`] : [];
  return [`${server} reports errors that were not there before:`, ...shown, ...rest].join("\n");
}

function describe({ path, line, column, message, code }: Problem, cwd: string): string {
  const name = isAbsolute(path) && isInside(path, [cwd]) ? relative(cwd, path) : path;
  const text = message.replaceAll(/\s+/g, " ").trim();
  return `${name}:${line}:${column}: ${text}${code === "" ? "" : ` (${code})`}`;
}
