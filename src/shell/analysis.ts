import { parse } from "unbash";
import { messageOf } from "../base/errors.ts";
import { hasInvisible } from "../permission/invisible.ts";
import type { PermissionRequest } from "../permission/rule.ts";
import type { ShellContext, ShellPart } from "./part.ts";
import { otherReadings } from "./readings.ts";
import { ShellWalk } from "./walk.ts";

/** Longer command lines are not read but asked for as a whole. */
export const commandLimit = 20_000;

/** Longer command lines are not even read to find what is denied, but cut into pieces. */
const readingLimit = 200_000;

/**
 * What a command line needs permission for: `bash` for each simple command in it, and `edit`, `read` and
 * `external_directory` for the files and folders that it names. Touches nothing but `resolve`; never throws: what
 * cannot be read becomes a request that only a rule for everything allows.
 */
export function analyzeShell(command: string, context: ShellContext): PermissionRequest[] {
  return explainShell(command, context).map(({ permission, always, ...subject }) => {
    return { permission, subjects: [subject], always };
  });
}

/** The same as {@link analyzeShell}, with the reason for each part. */
export function explainShell(command: string, context: ShellContext): ShellPart[] {
  const refusal = refuse(command);
  if (refusal !== undefined)
    return [...asWhole(command, refusal), ...otherParts([command, ...otherReadings(command)], context)];
  const read = readParts(command, context);
  const others = otherReadings(command);
  if ("parts" in read) return [...read.parts, ...readingParts(others, context)];
  return [...asWhole(command, read.problem), ...otherParts([command, ...others], context)];
}

type ReadParts = { readonly parts: ShellPart[] } | { readonly problem: string };

function readParts(command: string, context: ShellContext): ReadParts {
  try {
    const walk = new ShellWalk(context);
    walk.script(parse(command), command, [context.start ?? context.cwd]);
    const runs = walk.parts.some(({ permission, steers }) => permission === "bash" && !steers);
    return {
      parts: runs ? walk.parts : [bashPart(command), ...walk.parts.filter(({ steers }) => !steers)],
    };
  } catch (error) {
    return { problem: `it cannot be read as shell text (${messageOf(error)})` };
  }
}

/** What a line that is not read as written does in other readings, or in its pieces where none is shell text. */
function otherParts(texts: readonly string[], context: ShellContext): ShellPart[] {
  const parts = readingParts(texts, context);
  return parts.length > 0 ? parts : pieceParts(texts.flatMap(piecesOf), context);
}

function readingParts(texts: readonly string[], context: ShellContext): ShellPart[] {
  return asOtherReading(texts.flatMap((text) => readOrNothing(text, context)));
}

function pieceParts(pieces: readonly string[], context: ShellContext): ShellPart[] {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const read = length <= readingLimit ? pieces.flatMap((piece) => readOrNothing(piece, context)) : [];
  return asOtherReading([...read, ...pieces.map(bashPart)]);
}

function asOtherReading(parts: readonly ShellPart[]): ShellPart[] {
  const distinct = new Map(parts.map((part) => [`${part.permission} ${part.text}`, part]));
  return [...distinct.values()].map((part) => ({ ...part, isOtherReading: true, always: [] }));
}

function readOrNothing(text: string, context: ShellContext): ShellPart[] {
  if (text.length > readingLimit) return [];
  const read = readParts(text, context);
  return "parts" in read ? read.parts : [];
}

/** Commands of a text that is no shell text, cut where one may begin. */
function piecesOf(text: string): string[] {
  const pieces = text.split("\n").flatMap((line) => [line, ...line.split(/[;&|(){}`]/)]);
  return [...new Set(pieces.map((piece) => piece.trim()))].filter((piece) => piece !== "");
}

function refuse(command: string): string | undefined {
  if (command.length > commandLimit) return `it is longer than ${commandLimit} characters`;
  if (hasInvisible(command)) return "it contains control characters or invisible ones";
  return undefined;
}

/** A line that runs no command but redirects or assigns is judged by its own text. */
function bashPart(command: string): ShellPart {
  return { permission: "bash", text: command.trim(), reason: "runs in the shell", always: [] };
}

/** Nothing is known: it may run, read and write anything anywhere. */
function asWhole(command: string, opaque: string): ShellPart[] {
  const reason = `may do anything: ${opaque}`;
  const permissions = ["bash", "external_directory", "edit", "read"] as const;
  return permissions.map((permission) => ({ permission, text: command, opaque, reason, always: [] }));
}
