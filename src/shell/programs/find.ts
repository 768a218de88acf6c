import { doubts } from "../opaque-reason.ts";
import type { OpaqueReason } from "../opaque-reason.ts";
import { filesFound, type FindWords, findWords, type PipedFiles, isReader } from "./piped-files.ts";
import { addFolders } from "./operands.ts";
import type { Invocation, EvalContext, Scan, SimpleCommand } from "../part.ts";
import { addListed, addPath } from "../syntax/paths.ts";
import { describeProgram } from "./program.ts";
import { programOf } from "./program-table.ts";
import { canonicalText, literalArgument, unknownArguments } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";

/** Tests of find that run or write: `;` or `+` ends the command of the first four. */
const findRuns = new Set(["-exec", "-execdir", "-ok", "-okdir"]);
const findWrites = new Set(["-fprint", "-fprint0", "-fprintf", "-fls"]);

export function describeFind({ scan, args, command, place }: Invocation): OpaqueReason | undefined {
  const words = findWords(args);
  const { starts, tests } = words;
  addFolders(scan, starts, followsLinks(words), place);
  const firstAction = tests.findIndex(({ text }) => findRuns.has(text));
  const found: string[] = [];
  for (const [index, arg] of tests.entries()) {
    const next = tests[index + 1];
    if (findRuns.has(arg.text)) {
      const handed = () => filesFound(scan, words, firstAction, place);
      const inner = findCommand(commandWords(arg.text, tests.slice(index + 1)), command, handed);
      scan.addWrapped(inner, inFoundFolder(arg.text, place));
    }
    if (findWrites.has(arg.text) && next) addPath(scan, next, { access: "edit" }, place);
    if (/^-(?:newer\w*|anewer|cnewer|samefile)$/.test(arg.text) && next)
      addPath(scan, next, { access: "read" }, place);
    if (arg.text === "-files0-from" && next) addListed(scan, next, place);
    if (arg.text === "-delete") addDeletions(scan, starts, !tests.some(isNarrowing), place);
    if (findRuns.has(arg.text) || findWrites.has(arg.text) || arg.text === "-delete") found.push(arg.text);
  }
  if (args.some((arg) => !arg.values && /^(?:-|$)/.test(arg.known))) return doubts.unsure;
  return found.length > 0 ? doubts.option([...new Set(found)]) : undefined;
}

function followsLinks({ options, tests }: FindWords): boolean {
  return options.some(({ text }) => /^-[A-Z]*L/.test(text)) || tests.some(({ text }) => text === "-follow");
}

/** What stands behind `-x` is a command that gets what was found. */
export function describeFd(invocation: Invocation): OpaqueReason | undefined {
  const { scan, args, command, place } = invocation;
  const runs = args.findIndex(({ text }) => /^(?:-[xX]|--exec(?:-batch)?)$/.test(text));
  if (runs === -1) return describeProgram(invocation, programOf("fd"));
  const inner = findCommand(commandWords("-exec", args.slice(runs + 1)), command);
  scan.addWrapped({ ...inner, argv: [...inner.argv, unknownArguments] }, place);
  return describeProgram({ ...invocation, args: args.slice(0, runs + 1) }, programOf("fd"));
}

/** What find runs; a program that only reads gets the files that are there now, any other what nobody can know. */
function findCommand(
  written: readonly Argument[],
  command: SimpleCommand,
  handed?: () => PipedFiles,
): SimpleCommand {
  const files = isReader(written) ? handed?.() : undefined;
  const argv = written.map((word) => (word.text.includes("{}") ? inPlaceOfBraces(word, files) : word));
  return { ...command, argv, raw: canonicalText(argv), assignments: [] };
}

/** A `+` ends the command behind `{}` only, and never one that a person is asked for. */
function commandWords(action: string, words: readonly Argument[]): readonly Argument[] {
  const isAsked = action.startsWith("-ok");
  const end = words.findIndex(
    ({ text }, index) => text === ";" || (text === "+" && !isAsked && words[index - 1]?.text === "{}"),
  );
  return end === -1 ? words : words.slice(0, end);
}

function inPlaceOfBraces(word: Argument, files: PipedFiles): Argument {
  if (word.text === "{}" && files !== undefined) return { ...word, values: files, known: "" };
  return { ...word, values: undefined, known: word.text.startsWith("{}") ? "./" : word.text };
}

function inFoundFolder(option: string, place: EvalContext): EvalContext {
  return option.endsWith("dir") ? { ...place, bases: undefined } : place;
}

/** Tests of find that leave something out. */
function isNarrowing({ text }: Argument): boolean {
  return /^-(?:i?l?name|i?path|i?wholename|i?regex|[acm](?:time|min)|newer\w*|size|empty|user|group|perm)$/.test(
    text,
  );
}

function addDeletions(scan: Scan, starts: readonly Argument[], removes: boolean, place: EvalContext): void {
  const folders = starts.length > 0 ? starts : [literalArgument(".")];
  for (const folder of folders)
    addPath(scan, folder, { access: "edit", folder: true, below: true, removes }, place);
}
