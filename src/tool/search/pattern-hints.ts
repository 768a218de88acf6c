import { sep } from "node:path";
import { toSlashes } from "../../base/files/paths.ts";

/** Returns why a regular expression can match no line, or probably means something else; undefined if nothing is odd. */
export function explainExpression(pattern: string): string | undefined {
  const plain = removeClasses(pattern);
  if (/\n|(?<!\\)(?:\\\\)*\\[nr]/.test(pattern))
    return "The pattern contains a line break, but each line is matched alone: search for a part on one line, then read around it.";
  if (/(?<!\\)(?:\\\\)*\$(?=[^|)$?*])/.test(plain))
    return String.raw`Nothing follows the end of a line: write \$ for the character $.`;
  if (/[^|(^\\?:!=<)](?<!\(\?[a-z]*)\^/.test(plain))
    return String.raw`Nothing comes before the beginning of a line: write \^ for the character ^.`;
  if (/\\\|/.test(plain)) return String.raw`\| is the character |: write | between alternatives.`;
  if (/\\[(){}]/.test(plain) && /\\\(.*\\\)/s.test(plain))
    return String.raw`\( and \) are the characters themselves: write ( and ) for a group.`;
  if (/^\/.+\/[gimsuy]*$/s.test(pattern))
    return "The slashes around the pattern are searched too: leave them out.";
  if (/^(["'`]).+\1$/s.test(pattern))
    return "The quotes around the pattern are searched too: leave them out if they are not in the files.";
  return undefined;
}

/** Replaces character classes, in which other rules hold. */
const removeClasses = (pattern: string): string =>
  pattern.replaceAll(/(?<!\\)\[\^?\]?(?:[^\]\\]|\\.)*\]/gs, "x");

/**
 * Returns why a glob can match no file of the folder, or probably means something else; undefined if nothing is odd.
 * `separator` is that of the system.
 */
export function explainGlob(pattern: string, folder: string, separator: string = sep): string | undefined {
  const glob = toSlashes(pattern, separator);
  if (glob.includes("\\"))
    return String.raw`A backslash only escapes the next character: separate folders by /.`;
  if (/^!?(?:\.\.\/|~)/.test(glob))
    return "A pattern does not lead out of the folder that is searched: give the folder as path.";
  if (/^!?(?:\/|[A-Za-z]:)/.test(glob))
    return `A leading / means the folder that is searched, ${folder}: give another folder as path.`;
  if (hasOpenBracket(glob)) return "A bracket is not closed, so that it counts as a character.";
  if (!/[*?[{]/.test(glob))
    return "The pattern has no wildcard, so that only this name matches: write **/*name* for a part of a name, name/** for what is in a folder.";
  const [first = ""] = glob.split("/");
  return glob.includes("/") && first !== "**" && toSlashes(folder, separator).split("/").includes(first)
    ? `Patterns are relative to the folder that is searched, ${folder}: leave out its own folders, or begin with **/.`
    : undefined;
}

function hasOpenBracket(glob: string): boolean {
  const count = (sign: string) => glob.split(sign).length - 1;
  return count("{") !== count("}") || (count("[") > 0 && count("]") === 0);
}
