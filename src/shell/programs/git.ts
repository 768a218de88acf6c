import { opaqueReasons, strictestReason } from "../opaque-reason.ts";
import type { OpaqueReason } from "../opaque-reason.ts";
import { addOptionFiles } from "./operands.ts";
import { findFlags, parseOptions, splitWords } from "./options.ts";
import type { ParsedOptions } from "./options.ts";
import { enterFolder } from "../syntax/working-dirs.ts";
import type { Invocation, EvalContext, Scan } from "../facts.ts";
import { addPath, addUnknownPath } from "../syntax/paths.ts";
import { describeProgram } from "./program.ts";
import { interactiveReason } from "./program-table.ts";
import type { Program } from "./program-table.ts";
import { knownText, literalArgument, sliceValue } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";

/** Options of git before the subcommand. */
export const gitProgram: Program = {
  valueFlags: "-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix --attr-source",
  dangerousFlags: "-c --config-env --exec-path --git-dir --work-tree --namespace",
  stopsAtFirstOperand: true,
};

const commonDangerousFlags =
  "--upload-pack --receive-pack --exec --output --ext-diff --open-files-in-pager --config";
const commonTextFlags =
  "-m --message --author --date --grep --format --pretty --since --until --after --before -S -G -L --trailer -n --max-count --committer";

/** Subcommands that take more than the common options, or that are opaque. */
const gitCommands: Record<string, Program> = {
  grep: {
    dangerousFlags: `${commonDangerousFlags} -O`,
    textFlags: "-e -A -B -C -m --max-depth",
    inputFileFlags: "-f",
    operands: "read",
    skippedOperands: 1,
    patternFlags: "-e -f",
    recursiveReadFlags: "*",
  },
  archive: { dangerousFlags: `${commonDangerousFlags} -o --remote`, outputFileFlags: "-o --output" },
  "format-patch": {
    dangerousFlags: `${commonDangerousFlags} -o --output-directory`,
    outputFileFlags: "-o --output-directory",
  },
  clone: {
    operands: "clone",
    dangerousFlags: `${commonDangerousFlags} -u -c --template`,
    valueFlags: "-b --branch --depth -o --origin",
  },
  init: {
    dangerousFlags: `${commonDangerousFlags} --template --separate-git-dir`,
    valueFlags: "-b --initial-branch --object-format",
    operands: "write",
    recursiveWriteFlags: "*",
  },
  fetch: { dangerousFlags: `${commonDangerousFlags} -o` },
  push: { dangerousFlags: commonDangerousFlags, textFlags: "-o --push-option" },
  rebase: { dangerousFlags: `${commonDangerousFlags} -x -i --interactive` },
  branch: {
    dangerousFlags: `${commonDangerousFlags} --edit-description --no-list`,
    textFlags: "--format --sort --contains --no-contains --merged --points-at",
  },
  config: {
    dangerousFlags: `${commonDangerousFlags} --no-list --no-get --no-get-all --no-get-regexp --no-get-urlmatch --no-get-color --no-get-colorbool`,
    inputFileFlags: "-f --file",
    textFlags: "--type --default",
  },
  commit: {
    dangerousFlags: commonDangerousFlags,
    textFlags: `${commonTextFlags} -C --reuse-message`,
    inputFileFlags: "-F --file -t --template",
  },
  tag: {
    dangerousFlags: commonDangerousFlags,
    textFlags: `${commonTextFlags} --sort -u --local-user`,
    inputFileFlags: "-F --file",
  },
  notes: { dangerousFlags: commonDangerousFlags, textFlags: commonTextFlags, inputFileFlags: "-F --file" },
  rm: {
    dangerousFlags: commonDangerousFlags,
    operands: "write",
    removesFiles: true,
    recursiveWriteFlags: "-r",
  },
  mv: {
    dangerousFlags: commonDangerousFlags,
    operands: "move",
    removesFiles: true,
    recursiveWriteFlags: "*",
    recursiveReadFlags: "*",
  },
  restore: {
    dangerousFlags: commonDangerousFlags,
    operands: "write",
    recursiveWriteFlags: "*",
    textFlags: "-s --source",
  },
  clean: {
    dangerousFlags: commonDangerousFlags,
    textFlags: "-e --exclude",
    writesUnnamedFiles: true,
    readOnlyFlags: "-n --dry-run",
  },
  apply: {
    dangerousFlags: commonDangerousFlags,
    operands: "read",
    writesUnnamedFiles: true,
    valueFlags: "--directory",
  },
  stash: { dangerousFlags: commonDangerousFlags, textFlags: "-m --message" },
  switch: { dangerousFlags: commonDangerousFlags, valueFlags: "-c -C --create --force-create" },
  checkout: { dangerousFlags: commonDangerousFlags, valueFlags: "-b -B --orphan" },
  worktree: { dangerousFlags: commonDangerousFlags, valueFlags: "-b -B --reason" },
  difftool: { opaque: interactiveReason },
  mergetool: { opaque: interactiveReason },
  gui: { opaque: interactiveReason },
  instaweb: { opaque: interactiveReason },
  bisect: { dangerousFlags: `${commonDangerousFlags} run` },
  submodule: { dangerousFlags: `${commonDangerousFlags} foreach` },
  "filter-branch": { opaque: "it runs shell text" },
  "filter-repo": { opaque: "it runs program text" },
  "send-email": { opaque: "it runs what its configuration names" },
  hook: { opaque: "it runs a hook of the repository" },
};

/** Returns the record of a subcommand, or the default record. */
function findGitCommand(name: string): Program {
  return (
    (Object.hasOwn(gitCommands, name) ? gitCommands[name] : undefined) ?? {
      dangerousFlags: commonDangerousFlags,
      textFlags: commonTextFlags,
      outputFileFlags: "--output",
    }
  );
}

/** Options with which `git config` only reads. */
const configReadFlag = /^(?:--get(?:-all|-regexp)?|--list|-l|--show-origin)$/;
/** Negations of these options. */
const negatedReadFlag = /^--no-[gl]/;
/** Subcommands with which `git config` only reads. */
const configReadCommand = /^(?:get|list)$/;
/** Arguments with which `git config` changes something even with a single operand. */
const configChange = /^(?:--(?:unset|rem|ren|ed|add|rep).*|-\w*e\w*|edit)$/;

export function describeGit(invocation: Invocation): OpaqueReason | undefined {
  const { scan, args, evalContext } = invocation;
  const before = parseOptions(args, gitProgram);
  addOptionFiles(scan, before, gitProgram, evalContext);
  const dangers = findFlags(before, gitProgram.dangerousFlags);
  const around = before.isUncertain
    ? opaqueReasons.unsure
    : dangers.length > 0
      ? opaqueReasons.option(dangers)
      : undefined;
  const [subcommand, ...rest] = before.operands;
  if (!subcommand) return around;
  if (knownText(subcommand) === undefined) return opaqueReasons.unsure;
  const inside = { ...invocation, evalContext: enterFolders(before, evalContext) };
  return strictestReason(describeSubcommand(subcommand.text, rest, inside), around);
}

function describeSubcommand(
  name: string,
  args: readonly Argument[],
  invocation: Invocation,
): OpaqueReason | undefined {
  const { scan, evalContext } = invocation;
  const program = findGitCommand(name);
  if (name === "checkout") addCheckoutPaths(scan, args, evalContext);
  if (name === "worktree" && args[0]?.text === "add") addWorktree(scan, args.slice(1), program, evalContext);
  if (printingCommands.has(name)) addPrintedFiles(scan, args, evalContext);
  if (args.some(({ text }) => text.startsWith("--no-ind"))) addComparedFiles(scan, args, evalContext);
  if (name === "cat-file" && args.some(({ text }) => /^--batch(?!-check|-all)/.test(text)))
    addUnknownPath(scan, "git cat-file --batch", { access: "read" }, unknownFileReason);
  if (name === "bundle" && args[0]?.text === "create" && args[1])
    addPath(scan, args[1], { access: "write" }, evalContext);
  if (packingCommands.has(name))
    addPath(scan, literalArgument("."), { access: "read", within: true }, evalContext);
  const own = describeProgram({ ...invocation, args }, program);
  const doubt = strictestReason(findDangerousWord(name, args, program), own);
  if (doubt === opaqueReasons.gitConfig)
    addPath(scan, literalArgument(".git/config"), { access: "write" }, evalContext);
  return doubt;
}

/** `git worktree add a` writes the folder `a`. */
function addWorktree(
  scan: Scan,
  args: readonly Argument[],
  program: Program,
  evalContext: EvalContext,
): void {
  const [folder] = parseOptions(args, program).operands;
  if (folder) addPath(scan, folder, { access: "write", folder: true, below: true }, evalContext);
}

/** Subcommands that print file contents, and those that pack all files. */
const printingCommands = splitWords(
  "show diff log blame annotate cat-file grep archive diff-tree format-patch whatchanged",
);
const packingCommands = splitWords("archive bundle fast-export");

/** `git show HEAD~1:a` and `git log -p -- a` print `a`. */
function addPrintedFiles(scan: Scan, args: readonly Argument[], evalContext: EvalContext): void {
  const dashes = args.findIndex(({ text }) => text === "--");
  const revisions = dashes === -1 ? args : args.slice(0, dashes);
  const paths = dashes === -1 ? [] : args.slice(dashes + 1);
  for (const { text, values } of revisions.map(removeLineRange)) {
    if (values === undefined && /^(?!-).*:/s.test(text))
      addUnknownPath(scan, text, { access: "read" }, unknownFileReason);
    for (const value of values ?? []) {
      const file = revisionFile.exec(value.text)?.[1];
      if (file)
        addPath(
          scan,
          { ...literalArgument(file), values: [{ text: file, glob: value.glob }] },
          { access: "read" },
          evalContext,
        );
    }
  }
  for (const path of paths) addPath(scan, path, { access: "read", within: true }, evalContext);
}

/** Removes the line range: `-L1,5:a` and `-L :name:a` print lines of `a`. */
function removeLineRange(arg: Argument, index: number, args: readonly Argument[]): Argument {
  const isRange = arg.text.startsWith("-L") || args[index - 1]?.text === "-L";
  const from = isRange ? arg.text.lastIndexOf(":") : -1;
  if (from === -1) return arg;
  const values = arg.values?.map((value) => sliceValue(value, value.text.lastIndexOf(":")));
  return { ...arg, text: arg.text.slice(from), values };
}

/** `git diff --no-index` compares any files. */
function addComparedFiles(scan: Scan, args: readonly Argument[], evalContext: EvalContext): void {
  for (const file of args.filter(({ text }) => !text.startsWith("-")))
    addPath(scan, file, { access: "read", within: true }, evalContext);
}

const unknownFileReason = "the file that it prints cannot be known before it runs";

/** Matches the file in `HEAD:a`, `:a` and `:2:a`; not options, and not `:/a`, which searches commit messages. */
const revisionFile = /^(?!-)(?:[^:{]|\{[^}]*\})*:(?:[0-3]:)?(?!\/)(.+)$/s;

/** Applies each `-C`, relative to the one before. */
function enterFolders({ flags: found }: ParsedOptions, evalContext: EvalContext): EvalContext {
  const folders = found.flatMap(({ name, value }) => (name === "-C" && value ? [value] : []));
  return folders.reduce(enterFolder, evalContext);
}

/** `git checkout -- a` overwrites `a`. */
function addCheckoutPaths(scan: Scan, args: readonly Argument[], evalContext: EvalContext): void {
  const dashes = args.findIndex(({ text }) => text === "--");
  const files = dashes === -1 ? [] : args.slice(dashes + 1);
  for (const file of files) addPath(scan, file, { access: "write", below: true }, evalContext);
}

/** Returns the reason for an operand that makes git run something. */
function findDangerousWord(
  subcommand: string,
  rest: readonly Argument[],
  program: Program,
): OpaqueReason | undefined {
  const named = rest.find((arg) => splitWords(program.dangerousFlags).has(arg.text));
  if (named && !named.text.startsWith("-")) return opaqueReasons.option([named.text]);
  if (rest.some((arg) => /^(?:ext|fd)::/.test(arg.text)))
    return { reason: "a remote of this kind runs a command" };
  return subcommand === "config" && changesConfig(rest.map(({ text }) => text))
    ? opaqueReasons.gitConfig
    : undefined;
}

function changesConfig(args: readonly string[]): boolean {
  const hasArgument = (pattern: RegExp) => args.some((text) => pattern.test(text));
  if (configReadCommand.test(args[0] ?? "")) return false;
  if (hasArgument(configReadFlag) && !hasArgument(negatedReadFlag)) return false;
  return hasArgument(configChange) || args.filter((text) => !text.startsWith("-")).length !== 1;
}
