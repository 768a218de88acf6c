import { opaqueReasons } from "../opaque-reason.ts";
import type { OpaqueReason } from "../opaque-reason.ts";
import { listFoundFiles, type FindWords, splitFindWords, type PipedFiles, isReader } from "./piped-files.ts";
import { addFolders } from "./operands.ts";
import type { Invocation, EvalContext, Scan, SimpleCommand } from "../facts.ts";
import { addFileList, addPath } from "../syntax/paths.ts";
import { describeProgram } from "./program.ts";
import { findProgram } from "./program-table.ts";
import { canonicalText, literalArgument, unknownArguments } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";

/** Actions of `find` that run a command, up to `;` or `+`, and that write a file. */
const runActions = new Set(["-exec", "-execdir", "-ok", "-okdir"]);
const writeActions = new Set(["-fprint", "-fprint0", "-fprintf", "-fls"]);

export function describeFind({ scan, args, command, evalContext }: Invocation): OpaqueReason | undefined {
  const words = splitFindWords(args);
  const { starts, tests } = words;
  addFolders(scan, starts, followsLinks(words), evalContext);
  const firstAction = tests.findIndex(({ text }) => runActions.has(text));
  const found: string[] = [];
  for (const [index, arg] of tests.entries()) {
    const next = tests[index + 1];
    if (runActions.has(arg.text)) {
      const listFiles = () => listFoundFiles(scan, words, firstAction, evalContext);
      const inner = createFoundCommand(
        takeCommandWords(arg.text, tests.slice(index + 1)),
        command,
        listFiles,
      );
      scan.addWrapped(inner, enterFoundFolder(arg.text, evalContext));
    }
    if (writeActions.has(arg.text) && next) addPath(scan, next, { access: "write" }, evalContext);
    if (/^-(?:newer\w*|anewer|cnewer|samefile)$/.test(arg.text) && next)
      addPath(scan, next, { access: "read" }, evalContext);
    if (arg.text === "-files0-from" && next) addFileList(scan, next, evalContext);
    if (arg.text === "-delete") addDeletions(scan, starts, !tests.some(isNarrowing), evalContext);
    if (runActions.has(arg.text) || writeActions.has(arg.text) || arg.text === "-delete")
      found.push(arg.text);
  }
  if (args.some((arg) => !arg.values && /^(?:-|$)/.test(arg.known))) return opaqueReasons.unsure;
  return found.length > 0 ? opaqueReasons.option([...new Set(found)]) : undefined;
}

function followsLinks({ options, tests }: FindWords): boolean {
  return options.some(({ text }) => /^-[A-Z]*L/.test(text)) || tests.some(({ text }) => text === "-follow");
}

/** The words after `-x` are a command that receives the found files. */
export function describeFd(invocation: Invocation): OpaqueReason | undefined {
  const { scan, args, command, evalContext } = invocation;
  const runs = args.findIndex(({ text }) => /^(?:-[xX]|--exec(?:-batch)?)$/.test(text));
  if (runs === -1) return describeProgram(invocation, findProgram("fd"));
  const inner = createFoundCommand(takeCommandWords("-exec", args.slice(runs + 1)), command);
  scan.addWrapped({ ...inner, argv: [...inner.argv, unknownArguments] }, evalContext);
  return describeProgram({ ...invocation, args: args.slice(0, runs + 1) }, findProgram("fd"));
}

/** Creates the command that `find` runs. Its files are known only if it does nothing but read them. */
function createFoundCommand(
  written: readonly Argument[],
  command: SimpleCommand,
  listFiles?: () => PipedFiles,
): SimpleCommand {
  const files = isReader(written) ? listFiles?.() : undefined;
  const argv = written.map((word) => (word.text.includes("{}") ? replaceBraces(word, files) : word));
  return { ...command, argv, raw: canonicalText(argv), assignments: [] };
}

/** Takes the words of a command: up to `;`, or up to `+` after `{}` unless the action is `-ok`. */
function takeCommandWords(action: string, words: readonly Argument[]): readonly Argument[] {
  const isAsked = action.startsWith("-ok");
  const end = words.findIndex(
    ({ text }, index) => text === ";" || (text === "+" && !isAsked && words[index - 1]?.text === "{}"),
  );
  return end === -1 ? words : words.slice(0, end);
}

function replaceBraces(word: Argument, files: PipedFiles): Argument {
  if (word.text === "{}" && files !== undefined) return { ...word, values: files, known: "" };
  return { ...word, values: undefined, known: word.text.startsWith("{}") ? "./" : word.text };
}

function enterFoundFolder(option: string, evalContext: EvalContext): EvalContext {
  return option.endsWith("dir") ? { ...evalContext, workingDirs: undefined } : evalContext;
}

/** Whether a test of `find` excludes files. */
function isNarrowing({ text }: Argument): boolean {
  return /^-(?:i?l?name|i?path|i?wholename|i?regex|[acm](?:time|min)|newer\w*|size|empty|user|group|perm)$/.test(
    text,
  );
}

function addDeletions(
  scan: Scan,
  starts: readonly Argument[],
  removes: boolean,
  evalContext: EvalContext,
): void {
  const folders = starts.length > 0 ? starts : [literalArgument(".")];
  for (const folder of folders)
    addPath(scan, folder, { access: "write", folder: true, below: true, removes }, evalContext);
}
