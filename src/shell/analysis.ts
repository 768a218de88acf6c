import { parse } from "unbash";
import { messageOf } from "../base/errors.ts";
import { hasInvisible } from "../permission/invisible.ts";
import type { PermissionRequest } from "../permission/rule.ts";
import type { ShellContext, ShellPart } from "./part.ts";
import { findAlternativeReadings } from "./readings.ts";
import { ShellWalk } from "./walk.ts";

/** Maximum length in characters; longer command lines are opaque as a whole. */
export const commandLimit = 20_000;

/** Maximum length of a text that is analyzed to find denials; longer ones are only split into pieces. */
const readingLimit = 200_000;

/**
 * Returns the permissions that a command line needs: `bash` for each simple command, and `edit`, `read` and
 * `external_directory` for the files and folders that it names.
 * - Uses the disk only through `context`.
 * - Never throws: text that cannot be parsed becomes opaque requests, which only a rule for everything allows.
 */
export function analyzeShell(command: string, context: ShellContext): PermissionRequest[] {
  return explainShell(command, context).map(({ permission, always, ...subject }) => {
    return { permission, subjects: [subject], always };
  });
}

/** As {@link analyzeShell}, with a reason for each part. */
export function explainShell(command: string, context: ShellContext): ShellPart[] {
  const refusal = findRefusalReason(command);
  if (refusal !== undefined)
    return [
      ...createWholeParts(command, refusal),
      ...analyzeOtherTexts([command, ...findAlternativeReadings(command)], context),
    ];
  const read = analyzeText(command, context);
  const others = findAlternativeReadings(command);
  if ("parts" in read) return [...read.parts, ...analyzeReadings(others, context)];
  return [...createWholeParts(command, read.problem), ...analyzeOtherTexts([command, ...others], context)];
}

type AnalyzedText = { readonly parts: ShellPart[] } | { readonly problem: string };

function analyzeText(command: string, context: ShellContext): AnalyzedText {
  try {
    const walk = new ShellWalk(context);
    walk.script(parse(command), command, [context.start ?? context.cwd]);
    const runs = walk.parts.some(
      ({ permission, changesDirectory: steers }) => permission === "bash" && !steers,
    );
    return {
      parts: runs
        ? walk.parts
        : [createBashPart(command), ...walk.parts.filter(({ changesDirectory: steers }) => !steers)],
    };
  } catch (error) {
    return { problem: `it cannot be read as shell text (${messageOf(error)})` };
  }
}

/** Analyzes the readings of a line that is opaque as written; its pieces if no reading is shell text. */
function analyzeOtherTexts(texts: readonly string[], context: ShellContext): ShellPart[] {
  const parts = analyzeReadings(texts, context);
  return parts.length > 0 ? parts : analyzePieces(texts.flatMap(splitPieces), context);
}

function analyzeReadings(texts: readonly string[], context: ShellContext): ShellPart[] {
  return markAlternativeReading(texts.flatMap((text) => analyzeOrSkip(text, context)));
}

function analyzePieces(pieces: readonly string[], context: ShellContext): ShellPart[] {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const read = length <= readingLimit ? pieces.flatMap((piece) => analyzeOrSkip(piece, context)) : [];
  return markAlternativeReading([...read, ...pieces.map(createBashPart)]);
}

function markAlternativeReading(parts: readonly ShellPart[]): ShellPart[] {
  const distinct = new Map(parts.map((part) => [`${part.permission} ${part.text}`, part]));
  return [...distinct.values()].map((part) => ({ ...part, isAlternativeReading: true, always: [] }));
}

function analyzeOrSkip(text: string, context: ShellContext): ShellPart[] {
  if (text.length > readingLimit) return [];
  const read = analyzeText(text, context);
  return "parts" in read ? read.parts : [];
}

/** Splits a text that is not shell text where a command may begin. */
function splitPieces(text: string): string[] {
  const pieces = text.split("\n").flatMap((line) => [line, ...line.split(/[;&|(){}`]/)]);
  return [...new Set(pieces.map((piece) => piece.trim()))].filter((piece) => piece !== "");
}

function findRefusalReason(command: string): string | undefined {
  if (command.length > commandLimit) return `it is longer than ${commandLimit} characters`;
  if (hasInvisible(command)) return "it contains control characters or invisible ones";
  return undefined;
}

/** Creates the part for a line without a command, which only redirects or assigns. */
function createBashPart(command: string): ShellPart {
  return { permission: "bash", text: command.trim(), reason: "runs in the shell", always: [] };
}

/** Creates the parts of an opaque line, which may run, read and write anything. */
function createWholeParts(command: string, opaque: string): ShellPart[] {
  const reason = `may do anything: ${opaque}`;
  const permissions = ["bash", "external_directory", "edit", "read"] as const;
  return permissions.map((permission) => ({ permission, text: command, opaque, reason, always: [] }));
}
