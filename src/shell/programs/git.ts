import { doubts, strictestDoubt } from "../opaque-reason.ts";
import type { OpaqueReason } from "../opaque-reason.ts";
import { addOptionFiles } from "./operands.ts";
import { dangersIn, readOptions, words } from "./options.ts";
import type { Options } from "./options.ts";
import { inFolder } from "../syntax/working-dirs.ts";
import type { Invocation, EvalContext, Scan } from "../part.ts";
import { addPath, addUnknownPath } from "../syntax/paths.ts";
import { describeProgram } from "./program.ts";
import { interactive } from "./program-table.ts";
import type { Program } from "./program-table.ts";
import { knownText, literalArgument, valueFrom } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";

/** git before its command. */
export const git: Program = {
  values: "-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix --attr-source",
  danger: "-c --config-env --exec-path --git-dir --work-tree --namespace",
  leads: true,
};

const danger = "--upload-pack --receive-pack --exec --output --ext-diff --open-files-in-pager --config";
const texts =
  "-m --message --author --date --grep --format --pretty --since --until --after --before -S -G -L --trailer -n --max-count --committer";

/** git's commands with more than the common options. */
const commands: Record<string, Program> = {
  grep: {
    danger: `${danger} -O`,
    texts: "-e -A -B -C -m --max-depth",
    reads: "-f",
    operands: "read",
    skip: 1,
    instead: "-e -f",
    searches: "*",
  },
  archive: { danger: `${danger} -o --remote`, writes: "-o --output" },
  "format-patch": { danger: `${danger} -o --output-directory`, writes: "-o --output-directory" },
  clone: {
    operands: "clone",
    danger: `${danger} -u -c --template`,
    values: "-b --branch --depth -o --origin",
  },
  init: {
    danger: `${danger} --template --separate-git-dir`,
    values: "-b --initial-branch --object-format",
    operands: "write",
    below: "*",
  },
  fetch: { danger: `${danger} -o` },
  push: { danger, texts: "-o --push-option" },
  rebase: { danger: `${danger} -x -i --interactive` },
  branch: {
    danger: `${danger} --edit-description --no-list`,
    texts: "--format --sort --contains --no-contains --merged --points-at",
  },
  config: {
    danger: `${danger} --no-list --no-get --no-get-all --no-get-regexp --no-get-urlmatch --no-get-color --no-get-colorbool`,
    reads: "-f --file",
    texts: "--type --default",
  },
  commit: { danger, texts: `${texts} -C --reuse-message`, reads: "-F --file -t --template" },
  tag: { danger, texts: `${texts} --sort -u --local-user`, reads: "-F --file" },
  notes: { danger, texts, reads: "-F --file" },
  rm: { danger, operands: "write", removes: true, below: "-r" },
  mv: { danger, operands: "move", removes: true, below: "*", searches: "*" },
  restore: { danger, operands: "write", below: "*", texts: "-s --source" },
  clean: { danger, texts: "-e --exclude", writesUnseen: true, looks: "-n --dry-run" },
  apply: { danger, operands: "read", writesUnseen: true, values: "--directory" },
  stash: { danger, texts: "-m --message" },
  switch: { danger, values: "-c -C --create --force-create" },
  checkout: { danger, values: "-b -B --orphan" },
  worktree: { danger, values: "-b -B --reason" },
  difftool: { opaque: interactive },
  mergetool: { opaque: interactive },
  gui: { opaque: interactive },
  instaweb: { opaque: interactive },
  bisect: { danger: `${danger} run` },
  submodule: { danger: `${danger} foreach` },
  "filter-branch": { opaque: "it runs shell text" },
  "filter-repo": { opaque: "it runs program text" },
  "send-email": { opaque: "it runs what its configuration names" },
  hook: { opaque: "it runs a hook of the repository" },
};

/** What is known of one of git's commands. */
function commandOf(name: string): Program {
  return (
    (Object.hasOwn(commands, name) ? commands[name] : undefined) ?? {
      danger,
      texts,
      writes: "--output",
    }
  );
}

/** `git config` only reads with one of these options, unless a later one takes it back, or with such a first word. */
const configReads = /^(?:--get(?:-all|-regexp)?|--list|-l|--show-origin)$/;
const configReadsNot = /^--no-[gl]/;
const configReading = /^(?:get|list)$/;
/** With one of these it changes something though it is given one word. */
const configChanges = /^(?:--(?:unset|rem|ren|ed|add|rep).*|-\w*e\w*|edit)$/;

export function describeGit(invocation: Invocation): OpaqueReason | undefined {
  const { scan, args, place } = invocation;
  const before = readOptions(args, git);
  addOptionFiles(scan, before, git, place);
  const dangers = dangersIn(before, git.danger);
  const around = before.unsure ? doubts.unsure : dangers.length > 0 ? doubts.option(dangers) : undefined;
  const [subcommand, ...rest] = before.operands;
  if (!subcommand) return around;
  if (knownText(subcommand) === undefined) return doubts.unsure;
  const inside = { ...invocation, place: inFolders(before, place) };
  return strictestDoubt(describeSubcommand(subcommand.text, rest, inside), around);
}

function describeSubcommand(
  name: string,
  args: readonly Argument[],
  invocation: Invocation,
): OpaqueReason | undefined {
  const { scan, place } = invocation;
  const program = commandOf(name);
  if (name === "checkout") addCheckedOut(scan, args, place);
  if (name === "worktree" && args[0]?.text === "add") addWorktree(scan, args.slice(1), program, place);
  if (printing.has(name)) addPrinted(scan, args, place);
  if (args.some(({ text }) => text.startsWith("--no-ind"))) addCompared(scan, args, place);
  if (name === "cat-file" && args.some(({ text }) => /^--batch(?!-check|-all)/.test(text)))
    addUnknownPath(scan, "git cat-file --batch", { access: "read" }, unknownFile);
  if (name === "bundle" && args[0]?.text === "create" && args[1])
    addPath(scan, args[1], { access: "edit" }, place);
  if (packing.has(name)) addPath(scan, literalArgument("."), { access: "read", within: true }, place);
  const own = describeProgram({ ...invocation, args }, program);
  const doubt = strictestDoubt(wordDoubt(name, args, program), own);
  if (doubt === doubts.gitConfig) addPath(scan, literalArgument(".git/config"), { access: "edit" }, place);
  return doubt;
}

/** `git worktree add a` fills the folder `a`. */
function addWorktree(scan: Scan, args: readonly Argument[], program: Program, place: EvalContext): void {
  const [folder] = readOptions(args, program).operands;
  if (folder) addPath(scan, folder, { access: "edit", folder: true, below: true }, place);
}

/** Commands that print what files are or were, and such that pack all of them. */
const printing = words(
  "show diff log blame annotate cat-file grep archive diff-tree format-patch whatchanged",
);
const packing = words("archive bundle fast-export");

/** `git show HEAD~1:a` and `git log -p -- a` print `a`. */
function addPrinted(scan: Scan, args: readonly Argument[], place: EvalContext): void {
  const dashes = args.findIndex(({ text }) => text === "--");
  const revisions = dashes === -1 ? args : args.slice(0, dashes);
  const paths = dashes === -1 ? [] : args.slice(dashes + 1);
  for (const { text, values } of revisions.map(withoutRange)) {
    if (values === undefined && /^(?!-).*:/s.test(text))
      addUnknownPath(scan, text, { access: "read" }, unknownFile);
    for (const value of values ?? []) {
      const file = inRevision.exec(value.text)?.[1];
      if (file)
        addPath(
          scan,
          { ...literalArgument(file), values: [{ text: file, glob: value.glob }] },
          { access: "read" },
          place,
        );
    }
  }
  for (const path of paths) addPath(scan, path, { access: "read", within: true }, place);
}

/** `-L1,5:a` and `-L :name:a` print lines of `a`, as `:a` does. */
function withoutRange(arg: Argument, index: number, args: readonly Argument[]): Argument {
  const isRange = arg.text.startsWith("-L") || args[index - 1]?.text === "-L";
  const from = isRange ? arg.text.lastIndexOf(":") : -1;
  if (from === -1) return arg;
  const values = arg.values?.map((value) => valueFrom(value, value.text.lastIndexOf(":")));
  return { ...arg, text: arg.text.slice(from), values };
}

/** `git diff --no-index` compares any files. */
function addCompared(scan: Scan, args: readonly Argument[], place: EvalContext): void {
  for (const file of args.filter(({ text }) => !text.startsWith("-")))
    addPath(scan, file, { access: "read", within: true }, place);
}

const unknownFile = "the file that it prints cannot be known before it runs";

/** `HEAD:a`, `:a`, `:2:a`; neither a search for a message (`:/a`) nor an option. */
const inRevision = /^(?!-)(?:[^:{]|\{[^}]*\})*:(?:[0-3]:)?(?!\/)(.+)$/s;

/** Each `-C` leads on from the one before. */
function inFolders({ found }: Options, place: EvalContext): EvalContext {
  const folders = found.flatMap(({ name, value }) => (name === "-C" && value ? [value] : []));
  return folders.reduce(inFolder, place);
}

/** `git checkout -- a` overwrites `a`. */
function addCheckedOut(scan: Scan, args: readonly Argument[], place: EvalContext): void {
  const dashes = args.findIndex(({ text }) => text === "--");
  const files = dashes === -1 ? [] : args.slice(dashes + 1);
  for (const file of files) addPath(scan, file, { access: "edit", below: true }, place);
}

/** Words that are no options and yet make git run something. */
function wordDoubt(
  subcommand: string,
  rest: readonly Argument[],
  program: Program,
): OpaqueReason | undefined {
  const named = rest.find((arg) => words(program.danger).has(arg.text));
  if (named && !named.text.startsWith("-")) return doubts.option([named.text]);
  if (rest.some((arg) => /^(?:ext|fd)::/.test(arg.text)))
    return { reason: "a remote of this kind runs a command" };
  return subcommand === "config" && changesConfig(rest.map(({ text }) => text))
    ? doubts.gitConfig
    : undefined;
}

function changesConfig(args: readonly string[]): boolean {
  const isTold = (form: RegExp) => args.some((text) => form.test(text));
  if (configReading.test(args[0] ?? "")) return false;
  if (isTold(configReads) && !isTold(configReadsNot)) return false;
  return isTold(configChanges) || args.filter((text) => !text.startsWith("-")).length !== 1;
}
