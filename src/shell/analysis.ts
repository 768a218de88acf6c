import { parse } from "unbash";
import { messageOf } from "../base/errors.ts";
import { hasInvisible } from "../base/text/invisible.ts";
import type { ShellContext, ShellEffect, ShellFacts, ShownText } from "./facts.ts";
import { findAlternativeReadings } from "./readings.ts";
import { ShellWalk } from "./walk.ts";

/** Maximum length in characters; longer command lines are opaque as a whole. */
export const commandLimit = 20_000;

/** Maximum length of a text that is analyzed to find denials; longer ones are only split into pieces. */
const readingLimit = 200_000;

/**
 * Determines what a command line does: the simple commands that it runs, and the files and folders that they use.
 * - Uses the disk only through `context`.
 * - Never throws: text that cannot be parsed becomes opaque effects.
 */
export function analyzeShell(command: string, context: ShellContext): ShellFacts {
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

/** Returns the files whose text a command line prints unchanged if it succeeds. Never throws. */
export function findShownText(command: string, context: ShellContext): readonly ShownText[] {
  if (findRefusalReason(command) !== undefined) return [];
  try {
    const walk = new ShellWalk(context);
    walk.script(parse(command), command, [context.start ?? context.cwd]);
    return walk.shown;
  } catch {
    // Not shell text, or above a limit: then nothing is known.
    return [];
  }
}

type AnalyzedText = { readonly parts: ShellEffect[] } | { readonly problem: string };

function analyzeText(command: string, context: ShellContext): AnalyzedText {
  try {
    const walk = new ShellWalk(context);
    walk.script(parse(command), command, [context.start ?? context.cwd]);
    const runs = walk.parts.some(({ type, changesDirectory }) => type === "run" && !changesDirectory);
    return {
      parts: runs
        ? walk.parts
        : [createBashPart(command), ...walk.parts.filter(({ changesDirectory }) => !changesDirectory)],
    };
  } catch (error) {
    return { problem: `it cannot be read as shell text (${messageOf(error)})` };
  }
}

/** Analyzes the readings of a line that is opaque as written; its pieces if no reading is shell text. */
function analyzeOtherTexts(texts: readonly string[], context: ShellContext): ShellEffect[] {
  const parts = analyzeReadings(texts, context);
  return parts.length > 0 ? parts : analyzePieces(texts.flatMap(splitPieces), context);
}

function analyzeReadings(texts: readonly string[], context: ShellContext): ShellEffect[] {
  return markAlternativeReading(texts.flatMap((text) => analyzeOrSkip(text, context)));
}

function analyzePieces(pieces: readonly string[], context: ShellContext): ShellEffect[] {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const read = length <= readingLimit ? pieces.flatMap((piece) => analyzeOrSkip(piece, context)) : [];
  return markAlternativeReading([...read, ...pieces.map(createBashPart)]);
}

function markAlternativeReading(parts: readonly ShellEffect[]): ShellEffect[] {
  const distinct = new Map(parts.map((part) => [`${part.type} ${part.text}`, part]));
  return [...distinct.values()].map((part) => ({ ...part, isAlternativeReading: true, similar: [] }));
}

function analyzeOrSkip(text: string, context: ShellContext): ShellEffect[] {
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
function createBashPart(command: string): ShellEffect {
  return { type: "run", text: command.trim(), reason: "runs in the shell", similar: [] };
}

/** Creates the parts of an opaque line, which may run, read and write anything. */
function createWholeParts(command: string, opaque: string): ShellEffect[] {
  const reason = `may do anything: ${opaque}`;
  const types = ["run", "outside", "write", "read"] as const;
  return types.map((type) => ({ type, text: command, opaque, reason, similar: [] }));
}
