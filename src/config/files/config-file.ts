import { basename } from "node:path";
import { getNodeValue, parseTree, printParseErrorCode, type Node, type ParseError } from "jsonc-parser";
import type { z } from "zod";
import generatedSchema from "../../../schema/config.schema.json" with { type: "json" };
import { compileSchema } from "../../base/json-schema.ts";
import { excerpt } from "../../base/text/excerpt.ts";
import { isRecord } from "../../base/text/record.ts";
import { findNearMisses } from "../../permission/permission-names.ts";
import { repairLongPattern } from "../../permission/permission-config.ts";
import { describeExpectation, describeUnknownSetting, getValue } from "./expectation.ts";
import {
  findNode,
  findOffsetDeeperThan,
  type Path,
  type RepeatedKey,
  findRepeatedKeys,
} from "./json-tree.ts";
import { fromClaudeSettings, isClaudeSettings } from "./claude-settings.ts";
import { fromMcpFile, isMcpFile } from "./mcp-file.ts";
import { checkAddresses } from "./provider-address.ts";
import { configSchema, hookEvents, keysWithoutMeaning, type Config } from "../schema.ts";

/** A problem in a configuration file. Line and column count from 1; `text` is the whole report in one line. */
export interface ConfigProblem {
  readonly path: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly text: string;
}

/** A parsed but unchecked file, with the syntax tree for positions. */
export interface ParsedFile {
  readonly path: string;
  readonly text: string;
  readonly root: Node | undefined;
  readonly value: unknown;
  /** Syntax errors. */
  readonly problems: readonly ConfigProblem[];
  readonly repeated: readonly RepeatedKey[];
}

/** The valid part of a configuration, with a problem for each invalid value that was removed. */
export interface CheckedConfig {
  readonly config: Config;
  readonly problems: readonly ConfigProblem[];
  readonly notes: readonly string[];
}

/** Invalid values reported per file; with more, the whole file is ignored. */
const wrongValuesLimit = 200;

/** Syntax errors and repeated keys reported per file. */
const faultsLimit = 50;

/** Characters of a name in a path that a message shows. */
const nameLength = 60;

/** Nesting limit, so that recursive walks cannot overflow the stack. */
const depthLimit = 200;

/** Parses JSON with comments. Syntax errors are reported and the parseable rest is used. */
export function parseConfigFile(path: string, text: string): ParsedFile {
  const tooDeep = findOffsetDeeperThan(depthLimit, text);
  if (tooDeep !== undefined) {
    const message = `nested more than ${depthLimit} levels deep; the file is ignored`;
    const problems = [createProblem(path, text, tooDeep, message)];
    return { path, text, root: undefined, value: {}, problems, repeated: [] };
  }
  const errors: ParseError[] = [];
  const root = parseTree(text.replace(/^\uFEFF/, " "), errors, {
    allowTrailingComma: true,
    allowEmptyContent: true,
  });
  const repeated = root === undefined ? [] : findRepeatedKeys(root);
  const problems = createProblems(path, text, errors, syntaxMessage);
  const written: unknown = root === undefined ? {} : getNodeValue(root);
  return { path, text, root, value: convert(path, written), problems, repeated };
}

/** Converts a file of another program to a configuration. */
function convert(path: string, written: unknown): unknown {
  if (isMcpFile(path)) return fromMcpFile(written);
  return isClaudeSettings(path) ? fromClaudeSettings(written) : written;
}

/** Returns syntax errors and repeated keys, independent of the schema. */
export function listProblems({ path, text, problems, repeated }: ParsedFile): ConfigProblem[] {
  const reported = createProblems(path, text, repeated, (key) => repeatedMessage(key, text));
  return [...problems, ...reported].toSorted(byPlace);
}

/** Creates problems up to the limit; the last one mentions how many more there are. */
function createProblems<T extends { offset: number }>(
  path: string,
  text: string,
  faults: readonly T[],
  messageOf: (fault: T) => string,
): ConfigProblem[] {
  const rest = faults.length - faultsLimit;
  return faults.slice(0, faultsLimit).map((fault, at) => {
    const more = rest > 0 && at === faultsLimit - 1 ? ` (and ${rest} more errors like these)` : "";
    return createProblem(path, text, fault.offset, messageOf(fault) + more);
  });
}

function repeatedMessage({ path, before }: RepeatedKey, text: string): string {
  return `${path.join(".")}: duplicate key; this value is used, the one in line ${positionAt(text, before).line} is ignored`;
}

/**
 * Validates a value against the schema. Invalid values are removed one by one and reported with their
 * position.
 * `reported` are paths that need no second report.
 */
export function checkConfig(
  file: ParsedFile,
  value: unknown,
  reported: readonly { path: Path }[] = [],
): CheckedConfig {
  const checked = checkValues(file, value);
  const known = new Set(reported.map(({ path }) => path.join(".")));
  const found = [...checkAddresses(checked.config), ...findNearMisses(checked.config)]
    .filter(({ path }) => !known.has(path.join(".")))
    .map(({ path, message }) => createProblemAtPath(file, path, message));
  if (found.length === 0) return checked;
  return { ...checked, problems: [...checked.problems, ...found].toSorted(byPlace) };
}

function checkValues(file: ParsedFile, value: unknown): CheckedConfig {
  if (!isRecord(value)) {
    return { config: {}, problems: [createProblemAtPath(file, [], "expected an object { … }")], notes: [] };
  }
  if (isValid(value)) return { config: value, problems: [], notes: listUnused(file.path, value) };
  const candidate: unknown = structuredClone(value);
  const problems = new Map<string, ConfigProblem>();
  for (;;) {
    const result = configSchema.safeParse(candidate);
    if (result.success) {
      const reported = [...problems.values()].toSorted(byPlace);
      return { config: result.data, problems: reported, notes: listUnused(file.path, result.data) };
    }
    const wrong = result.error.issues.flatMap((issue) => locateIssue(issue, candidate));
    for (const { path, message } of wrong) {
      const pathKey = JSON.stringify(path);
      // Removing an invalid value can make a required one missing; report only the first.
      if (!problems.has(pathKey)) problems.set(pathKey, createProblemAtPath(file, path, message));
    }
    // Remove from the end of a list, so that the other indexes stay valid.
    for (const { path, isKey } of wrong.toReversed())
      if (isKey === true) repairKey(candidate, path);
      else repairValue(candidate, path);
    if (problems.size > wrongValuesLimit)
      return { config: {}, problems: reportTooManyErrors(file, problems), notes: [] };
  }
}

function reportTooManyErrors(
  file: ParsedFile,
  problems: ReadonlyMap<string, ConfigProblem>,
): ConfigProblem[] {
  const message = `more than ${wrongValuesLimit} values are wrong; the file is ignored, these are the first`;
  const reported = [...problems.values()].toSorted(byPlace).slice(0, faultsLimit);
  return [createProblemAtPath(file, [], message), ...reported];
}

const byPlace = (one: ConfigProblem, other: ConfigProblem): number =>
  one.line - other.line || one.column - other.column;

const check = compileSchema(generatedSchema);

/** Uses the generated JSON schema: building the zod schema, which explains errors, would slow the start. */
function isValid(value: unknown): value is Config {
  return check(value);
}

/** Creates a problem at a path, or at its nearest parent that exists in the file. */
export function createProblemAtPath(file: ParsedFile, path: Path, message: string): ConfigProblem {
  const names = path.map((name) => excerpt(String(name), nameLength));
  const where = names.length === 0 ? "" : `${names.join(".")}: `;
  return createProblem(file.path, file.text, offsetOf(file.root, path), where + message);
}

/** Line and column of a path, or of its nearest parent in the file. Both count from 1. */
export function getPosition(file: ParsedFile, path: Path): { line: number; column: number } {
  return positionAt(file.text, offsetOf(file.root, path));
}

/** Source text of a value before substitution; undefined if the path is not in the file. */
export function getSourceText({ root, text }: ParsedFile, path: Path): string | undefined {
  const node = findNode(root, path);
  return node && text.slice(node.offset, node.offset + node.length);
}

function createProblem(path: string, text: string, offset: number, message: string): ConfigProblem {
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
    const node = findNode(root, path.slice(0, length));
    if (node !== undefined) return length === path.length ? node.offset : (node.parent ?? node).offset;
  }
  return root.offset;
}

interface IssueLocation {
  readonly path: Path;
  readonly message: string;
  /** Whether the last name of the path is invalid, not its value. */
  readonly isKey?: boolean;
}

/** `config` is the value that was validated. */
function locateIssue(issue: z.core.$ZodIssue, config: unknown, around: Path = []): IssueLocation[] {
  const path = [...around, ...keysOf(issue.path)];
  if (issue.code === "unrecognized_keys")
    return issue.keys.map((key) => ({ path: [...path, key], message: describeUnknownSetting(path, key) }));
  if (issue.code === "invalid_key") {
    const { problem = describeExpectation(issue, undefined) } = repairPattern(config, path) ?? {};
    return [{ path, message: problem, isKey: true }];
  }
  const intended = issue.code === "invalid_union" ? findIntendedForm(issue.errors) : undefined;
  if (intended !== undefined) return intended.flatMap((inner) => locateIssue(inner, config, path));
  return [{ path, message: describeExpectation(issue, getValue(config, path)) }];
}

/** Picks the union member with the fewest errors inside the value; undefined if the value's type fits none. */
function findIntendedForm(forms: readonly z.core.$ZodIssue[][]): readonly z.core.$ZodIssue[] | undefined {
  return forms
    .filter((issues) => issues.every(({ path }) => path.length > 0))
    .toSorted((one, other) => one.length - other.length)
    .at(0);
}

const keysOf = (path: readonly PropertyKey[]): Path =>
  path.map((key) => (typeof key === "number" ? key : String(key)));

/**
 * Removes an invalid value. An invalid action becomes "ask", because removing it could turn a deny into an
 * allow.
 */
function repairValue(value: unknown, path: Path): void {
  const parent = getValue(value, path.slice(0, -1));
  const key = path.at(-1);
  const isRule = path.includes("permission") && key !== undefined && isRecord(parent);
  if (isRule && typeof parent[key] === "string") parent[key] = "ask";
  else removeValue(value, path);
}

const repairPattern = (value: unknown, path: Path) =>
  repairLongPattern(String(path.at(-1)), getValue(value, path));

/** Shortens a pattern that is too long, and keeps its place: the last pattern that matches wins. */
function repairKey(value: unknown, path: Path): void {
  const parent = getValue(value, path.slice(0, -1));
  const shorter = repairPattern(value, path);
  if (!isRecord(parent) || shorter === undefined) return removeValue(value, path);
  for (const [key, current] of Object.entries(parent)) {
    delete parent[key];
    if (key === path.at(-1)) parent[shorter.pattern] = shorter.action;
    else parent[key] = current;
  }
}

function removeValue(value: unknown, path: Path): void {
  const parent = getValue(value, path.slice(0, -1));
  const key = path.at(-1);
  if (key === undefined) return;
  if (Array.isArray(parent) && typeof key === "number" && key < parent.length) parent.splice(key, 1);
  else if (isRecord(parent) && Object.hasOwn(parent, key)) delete parent[key];
  else removeValue(value, path.slice(0, -1));
}

function listUnused(path: string, config: Config): string[] {
  return [...listIgnoredKeys(path, config), ...listUnsupportedHooks(path, config)];
}

function listUnsupportedHooks(path: string, { hooks = false }: Config): string[] {
  if (hooks === false) return [];
  const others = Object.keys(hooks).filter((event) => !hookEvents.some((known) => known === event));
  const kinds = Object.values(hooks).flatMap((groups) => groups.flatMap((group) => group.hooks));
  const unsupported = new Set(kinds.map(({ type }) => type).filter((type) => type !== "command"));
  return [
    ...others.map((event) => `${basename(path)}: hooks for "${event}" are not supported and are ignored.`),
    ...[...unsupported].map(
      (type) => `${basename(path)}: hooks of the type "${type}" are not supported and are ignored.`,
    ),
  ];
}

function listIgnoredKeys(path: string, config: Config): string[] {
  return keysWithoutMeaning
    .filter((key) => Object.hasOwn(config, key))
    .map((key) => `${basename(path)}: "${key}" is not supported and is ignored.`);
}

function syntaxMessage(error: ParseError): string {
  const name = printParseErrorCode(error.error).replaceAll(/([a-z])([A-Z])/g, "$1 $2");
  return name.toLowerCase().replace(/ expected$/, " is missing");
}
