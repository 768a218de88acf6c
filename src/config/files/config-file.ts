import { basename } from "node:path";
import { getNodeValue, parseTree, printParseErrorCode, type Node, type ParseError } from "jsonc-parser";
import type { z } from "zod";
import generatedSchema from "../../../schema/config.schema.json" with { type: "json" };
import { isRecord } from "../../base/text/record.ts";
import { expectationOf, unknownSetting, valueAt } from "./expectation.ts";
import { conforms } from "./json-schema.ts";
import { nodeAt, offsetBelow, type Path, type RepeatedKey, repeatedKeys } from "./json-tree.ts";
import { addressFaults } from "./provider-address.ts";
import { configSchema, keysWithoutMeaning, type Config } from "../schema.ts";

/** Something wrong in a configuration file. Line and column count from 1; `text` is the whole in one line. */
export interface ConfigProblem {
  readonly path: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly text: string;
}

/** A file as it was written: its value before anything is checked, and where its parts stand. */
export interface ParsedFile {
  readonly path: string;
  readonly text: string;
  readonly root: Node | undefined;
  readonly value: unknown;
  /** Why it does not parse, or not as a whole. */
  readonly problems: readonly ConfigProblem[];
  readonly repeated: readonly RepeatedKey[];
}

/** What of a value is right, and what was left out because it is wrong. */
export interface CheckedConfig {
  readonly config: Config;
  readonly problems: readonly ConfigProblem[];
  readonly notes: readonly string[];
}

/** How many wrong values of one file are told apart before the whole file is left out. */
const wrongValuesLimit = 200;

/** How many faults of one file are told when it does not parse or repeats itself. */
const faultsLimit = 50;

/** How deep values may stand in one another: whoever walks them must come to an end. */
const depthLimit = 200;

/** Reads JSON with comments; what does not parse is reported and the rest is kept. */
export function parseConfigFile(path: string, text: string): ParsedFile {
  const tooDeep = offsetBelow(depthLimit, text);
  if (tooDeep !== undefined) {
    const message = `nested more than ${depthLimit} deep; the file is left out`;
    const problems = [problemAt(path, text, tooDeep, message)];
    return { path, text, root: undefined, value: {}, problems, repeated: [] };
  }
  const errors: ParseError[] = [];
  const root = parseTree(text.replace(/^\uFEFF/, " "), errors, {
    allowTrailingComma: true,
    allowEmptyContent: true,
  });
  const repeated = root === undefined ? [] : repeatedKeys(root);
  const problems = problemsAt(path, text, errors, syntaxMessage);
  return { path, text, root, value: root === undefined ? {} : getNodeValue(root), problems, repeated };
}

/** What is wrong with a file as it is written, whatever its values mean. */
export function problemsOf({ path, text, problems, repeated }: ParsedFile): ConfigProblem[] {
  const told = problemsAt(path, text, repeated, (key) => repeatedMessage(key, text));
  return [...problems, ...told].toSorted(byPlace);
}

/** The first of many; the last one says how many more there are. */
function problemsAt<T extends { offset: number }>(
  path: string,
  text: string,
  faults: readonly T[],
  messageOf: (fault: T) => string,
): ConfigProblem[] {
  const rest = faults.length - faultsLimit;
  return faults.slice(0, faultsLimit).map((fault, at) => {
    const more = rest > 0 && at === faultsLimit - 1 ? ` (and ${rest} more faults like these)` : "";
    return problemAt(path, text, fault.offset, messageOf(fault) + more);
  });
}

function repeatedMessage({ path, before }: RepeatedKey, text: string): string {
  return `${path.join(".")}: stands here again; this one counts, the one in line ${positionAt(text, before).line} does not`;
}

/**
 * Checks a value against the schema. A wrong value is left out by itself and reported where it stands; `told` are
 * places whose fault is reported already.
 */
export function checkConfig(
  file: ParsedFile,
  value: unknown,
  told: readonly { path: Path }[] = [],
): CheckedConfig {
  const checked = checkValues(file, value);
  const known = new Set(told.map(({ path }) => path.join(".")));
  const addresses = addressFaults(checked.config)
    .filter(({ path }) => !known.has(path.join(".")))
    .map(({ path, message }) => problemAtPath(file, path, message));
  if (addresses.length === 0) return checked;
  return { ...checked, problems: [...checked.problems, ...addresses].toSorted(byPlace) };
}

function checkValues(file: ParsedFile, value: unknown): CheckedConfig {
  if (!isRecord(value)) {
    return { config: {}, problems: [problemAtPath(file, [], "expected an object { … }")], notes: [] };
  }
  if (isRight(value)) return { config: value, problems: [], notes: notesOn(file.path, value) };
  const kept: unknown = structuredClone(value);
  const problems = new Map<string, ConfigProblem>();
  for (;;) {
    const result = configSchema.safeParse(kept);
    if (result.success) {
      const told = [...problems.values()].toSorted(byPlace);
      return { config: result.data, problems: told, notes: notesOn(file.path, result.data) };
    }
    const wrong = result.error.issues.flatMap((issue) => placesOf(issue, kept));
    for (const { path, message } of wrong) {
      const place = JSON.stringify(path);
      // Without a wrong value something may be missing: that is no second fault.
      if (!problems.has(place)) problems.set(place, problemAtPath(file, path, message));
    }
    // The last item of a list goes first, so that the places of the others stay right.
    for (const { path } of wrong.toReversed()) mend(kept, path);
    if (problems.size > wrongValuesLimit)
      return { config: {}, problems: tooManyWrong(file, problems), notes: [] };
  }
}

/** Nothing of such a file counts. */
function tooManyWrong(file: ParsedFile, problems: ReadonlyMap<string, ConfigProblem>): ConfigProblem[] {
  const message = `more than ${wrongValuesLimit} values are wrong; the file is left out, here are the first`;
  const told = [...problems.values()].toSorted(byPlace).slice(0, faultsLimit);
  return [problemAtPath(file, [], message), ...told];
}

const byPlace = (one: ConfigProblem, other: ConfigProblem): number =>
  one.line - other.line || one.column - other.column;

/** Asks the generated schema, because the other one, which can say what is wrong, takes longer to build than a start may. */
function isRight(value: unknown): value is Config {
  return conforms(value, generatedSchema);
}

/** A problem with the value at a path, or with the nearest thing around it that was written. */
export function problemAtPath(file: ParsedFile, path: Path, message: string): ConfigProblem {
  const where = path.length === 0 ? "" : `${path.join(".")}: `;
  return problemAt(file.path, file.text, offsetOf(file.root, path), where + message);
}

/** Where a value stands in its file, or the nearest thing around it; counted from 1. */
export function positionOf(file: ParsedFile, path: Path): { line: number; column: number } {
  return positionAt(file.text, offsetOf(file.root, path));
}

/** A value as it was written, with nothing filled in; undefined where it is not. */
export function writtenAt({ root, text }: ParsedFile, path: Path): string | undefined {
  const node = nodeAt(root, path);
  return node && text.slice(node.offset, node.offset + node.length);
}

function problemAt(path: string, text: string, offset: number, message: string): ConfigProblem {
  const { line, column } = positionAt(text, offset);
  return { path, line, column, message, text: `${basename(path)}:${line}:${column}: ${message}` };
}

function positionAt(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

function offsetOf(root: Node | undefined, path: Path): number {
  if (root === undefined) return 0;
  for (let length = path.length; length > 0; length--) {
    const node = nodeAt(root, path.slice(0, length));
    if (node !== undefined) return length === path.length ? node.offset : (node.parent ?? node).offset;
  }
  return root.offset;
}

interface ConfigPlace {
  readonly path: Path;
  readonly message: string;
}

/** `config` is the value in which the issue was found. */
function placesOf(issue: z.core.$ZodIssue, config: unknown, around: Path = []): ConfigPlace[] {
  const path = [...around, ...keysOf(issue.path)];
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => ({ path: [...path, key], message: unknownSetting(path, key) }));
  const meant = issue.code === "invalid_union" ? formMeant(issue.errors) : undefined;
  if (meant !== undefined) return meant.flatMap((inner) => placesOf(inner, config, path));
  return [{ path, message: expectationOf(issue, valueAt(config, path)) }];
}

/** Of the forms that a value may have, the one with the fewest faults inside it; undefined where all are off. */
function formMeant(forms: readonly z.core.$ZodIssue[][]): readonly z.core.$ZodIssue[] | undefined {
  return forms
    .filter((issues) => issues.every(({ path }) => path.length > 0))
    .toSorted((one, other) => one.length - other.length)
    .at(0);
}

const keysOf = (path: readonly PropertyKey[]): Path =>
  path.map((key) => (typeof key === "number" ? key : String(key)));

/** A misspelt action counts as "ask": without it a rule below might allow what was meant to be denied. */
function mend(value: unknown, path: Path): void {
  const parent = valueAt(value, path.slice(0, -1));
  const key = path.at(-1);
  const isRule = path.includes("permission") && key !== undefined && isRecord(parent);
  if (isRule && typeof parent[key] === "string") parent[key] = "ask";
  else leaveOut(value, path);
}

function leaveOut(value: unknown, path: Path): void {
  const parent = valueAt(value, path.slice(0, -1));
  const key = path.at(-1);
  if (key === undefined) return;
  if (Array.isArray(parent) && typeof key === "number" && key < parent.length) parent.splice(key, 1);
  else if (isRecord(parent) && Object.hasOwn(parent, key)) delete parent[key];
  else leaveOut(value, path.slice(0, -1));
}

function notesOn(path: string, config: Config): string[] {
  return keysWithoutMeaning
    .filter((key) => Object.hasOwn(config, key))
    .map((key) => `${basename(path)}: "${key}" has no meaning here and is left alone.`);
}

function syntaxMessage(error: ParseError): string {
  const words = printParseErrorCode(error.error).replaceAll(/([a-z])([A-Z])/g, "$1 $2");
  return words.toLowerCase().replace(/ expected$/, " is missing");
}
