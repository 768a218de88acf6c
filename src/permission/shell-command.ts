import { basename, isAbsolute } from "node:path";
import { alwaysPattern, isNamedByWords, runnerWords } from "./arity.ts";
import { dangersIn, hasOption, readOptions, unknownIn, words } from "./shell-options.ts";
import type { Options } from "./shell-options.ts";
import type { Place, Scan, ShellPart } from "./shell-part.ts";
import { addPath, addUnknownPath, addVisiblePaths, fileOfAddress, isSystemProgram } from "./shell-paths.ts";
import type { PathUse } from "./shell-paths.ts";
import { git, gitCommandOf, gitConfigReads, isShell, programOf, wrapperOf } from "./shell-programs.ts";
import type { Program, Wrapper } from "./shell-programs.ts";
import { opaqueAwk, readSedScript } from "./shell-scripts.ts";
import { isDangerousVariable } from "./shell-variables.ts";
import { literalArgument, unknownArguments } from "./shell-word.ts";
import type { Argument, Value } from "./shell-word.ts";

/** A simple command: its words after expansion, without redirections and assignments. */
export interface SimpleCommand {
  readonly argv: readonly Argument[];
  /** As it is written. */
  readonly raw: string;
  readonly assignments: readonly ShellAssignment[];
}

export interface ShellAssignment {
  readonly name: string;
  readonly text: string;
  /** Undefined where it cannot be known. */
  readonly value: string | undefined;
}

/** What makes a command opaque. `unseen`: it runs shell text that cannot be read, which may touch any folder. */
interface Doubt {
  reason: string;
  options?: readonly string[];
  unseen?: boolean;
}

/** Commands that run each other (`sudo env nice …`) deeper than this are asked for as a whole. */
const wrapLimit = 32;

/** Adds everything that a simple command does, and what the command does that it wraps. */
export function addCommand(scan: Scan, command: SimpleCommand, place: Place): void {
  if (place.depth > wrapLimit) throw new Error(`commands wrap each other more than ${wrapLimit} deep`);
  const name = commandName(command);
  if (typeof name !== "string") return addBash(scan, command, name);
  if (isSteering(name, command)) return addFolders(scan, command, place);
  const own = describe(scan, command, name, place);
  addBash(scan, command, own ?? assignmentDoubt(command));
}

/** The name without its folder, or why it cannot be known. */
function commandName({ argv }: SimpleCommand): string | Doubt {
  const [word] = argv;
  const [value, ...others] = word?.values ?? [];
  if (!word || !value || others.length > 0 || value.glob || word.splits) {
    return { reason: "the command's name cannot be known before it runs", unseen: true };
  }
  if (value.text !== word.text && !word.text.startsWith("~/")) {
    return { reason: "the command's name comes from a variable", unseen: true };
  }
  if (!/^[\w./@+%:,~[\]][\w./@+%:,~[\]-]*$/.test(value.text))
    return { reason: "the command's name is odd", unseen: true };
  return basename(value.text);
}

/** `cd` beside other commands changes nothing but where they run: only its folder is judged. */
function isSteering(name: string, command: SimpleCommand): boolean {
  return name === "cd" && command.argv[0]?.text === "cd" && command.assignments.length === 0;
}

function addFolders(scan: Scan, { argv }: SimpleCommand, place: Place): void {
  for (const folder of cdTargets(argv.slice(1)))
    addPath(scan, folder, { access: "visible", folder: true }, place);
}

/** Where `cd` goes; nothing for the home folder. */
export function cdTargets(args: readonly Argument[]): readonly Argument[] {
  return args.filter((arg) => !/^-[LPe@]*$/.test(arg.text) && arg.text !== "--").slice(0, 1);
}

function addBash(scan: Scan, command: SimpleCommand, doubt: Doubt | undefined): void {
  const text = canonicalText(command.argv);
  const part: ShellPart = {
    permission: "bash",
    text,
    also: otherSpellings(command, text),
    reason: doubt ? `runs ${text}, but ${doubt.reason}` : `runs ${text}`,
    always: doubt ? [] : alwaysPattern(command.argv),
    ...(doubt && { opaque: doubt.reason }),
    ...(doubt?.options && { options: doubt.options }),
  };
  scan.add(part);
  if (doubt?.unseen) addUnknownPath(scan, text, { access: "visible" }, doubt.reason);
}

function canonicalText(argv: readonly Argument[]): string {
  return argv
    .filter((arg) => arg !== unknownArguments)
    .map((arg) => arg.text)
    .join(" ");
}

/** Spellings in which a person may have forbidden the same command. */
function otherSpellings({ argv, raw, assignments }: SimpleCommand, text: string): string[] {
  const known = argv.filter((arg) => arg !== unknownArguments);
  const values = known.map((arg) => (arg.values?.length === 1 ? (arg.values[0]?.text ?? "") : arg.text));
  const named = [basename(values[0] ?? "").replace(/\.exe$/i, ""), ...values.slice(1)];
  const spellings = [
    raw,
    values.join(" "),
    named.join(" "),
    ...assignments.map((assignment) => assignment.text),
  ];
  const plain = withoutLeadingOptions(named[0] ?? "", known.slice(1));
  if (plain) spellings.push(plain);
  spellings.push(...behindRunner(named));
  return [...new Set(spellings)].filter((spelling) => spelling !== text && spelling !== "");
}

/** `git -C a push` is `git push` for a rule that forbids it. */
function withoutLeadingOptions(name: string, args: readonly Argument[]): string | undefined {
  const program = name === "git" ? git : programOf(name);
  if (!args[0]?.text.startsWith("-") || !isNamedByWords(name)) return undefined;
  const { operands } = readOptions(args, { ...program, leads: true });
  return [name, ...operands.map((arg) => arg.text)].join(" ");
}

/** `pnpm exec rm a` runs `rm a`: what follows the words that name a runner, and its options. */
function behindRunner(values: readonly string[]): string[] {
  const count = runnerWords(values[0] ?? "", values[1] ?? "");
  if (count === 0) return [];
  const rest = values.slice(count);
  const first = rest.findIndex((value) => !value.startsWith("-"));
  return first === -1 ? [] : [rest.slice(first).join(" ")];
}

/** `IFS` before `read` only says how it splits its line. */
function assignmentDoubt({ argv, assignments }: SimpleCommand): Doubt | undefined {
  const reads = argv[0]?.text === "read";
  const variable = assignments.find(
    ({ name, value }) => !(reads && name === "IFS") && isDangerousVariable(name, value),
  );
  return variable && { reason: `the variable ${variable.name} may make it do something else` };
}

/** Adds the files of a command and what it wraps; says why it is opaque, if it is. */
function describe(scan: Scan, command: SimpleCommand, name: string, place: Place): Doubt | undefined {
  const args = command.argv.slice(1);
  const [program] = command.argv;
  if (program && /[/~]/.test(program.text) && !isSystemProgram(program.text))
    addVisiblePaths(scan, program, place);
  const special = specials[name];
  if (special && Object.hasOwn(specials, name)) return special(scan, args, command, place);
  if (isShell(name)) return describeShell(scan, args, command, place);
  const wrapper = wrapperOf(name);
  if (wrapper) return describeWrapper(scan, args, wrapper, command, place);
  return describeProgram(scan, args, programOf(name), place);
}

type Describe = (
  scan: Scan,
  args: readonly Argument[],
  command: SimpleCommand,
  place: Place,
) => Doubt | undefined;

const specials: Record<string, Describe> = {
  git: describeGit,
  find: describeFind,
  gfind: describeFind,
  dd: describeDd,
  eval: describeEval,
  trap: describeTrap,
  source: describeSource,
  ".": describeSource,
  sed: describeSed,
  gsed: describeSed,
  awk: describeAwk,
  gawk: describeAwk,
  mawk: describeAwk,
  nawk: describeAwk,
  export: describeDeclaration,
  declare: describeDeclaration,
  typeset: describeDeclaration,
  local: describeDeclaration,
  readonly: describeDeclaration,
  test: describeTest,
  "[": describeTest,
  read: describeSubscripts,
  unset: describeSubscripts,
  wait: describeSubscripts,
  let: describeSubscripts,
  printf: describePrintf,
  mapfile: describeMapfile,
  readarray: describeMapfile,
  jq: describeJq,
  fd: describeFd,
  fdfind: describeFd,
  aws: describeAws,
  alias: describeAlias,
  date: describeDate,
  tar: describeTar,
  gtar: describeTar,
  bsdtar: describeTar,
};

const doubts = {
  option: (options: readonly string[]): Doubt => ({
    reason: `${options.join(" ")} may make it run or write something else`,
    options,
  }),
  unsure: { reason: "an argument that cannot be known before it runs may be an option" },
  unseen: { reason: "it runs shell text that cannot be known before it runs", unseen: true },
  subscript: { reason: "the shell evaluates what stands in [ ]" },
  gitConfig: { reason: "git's configuration can name programs that later commands run" },
  input: { reason: "it runs what it gets from its input", unseen: true },
} as const;

function describeProgram(
  scan: Scan,
  args: readonly Argument[],
  program: Program | undefined,
  place: Place,
): Doubt | undefined {
  if (!program) {
    for (const arg of args) addVisiblePaths(scan, arg, place, "read");
    return undefined;
  }
  const options = readOptions(args, program);
  addOptionFiles(scan, options, program, place);
  addOperands(scan, options, program, place);
  if (program.writesUnseen) addUnseenWrites(scan, place);
  return programDoubt(options, program);
}

/** Files below the folder, named by what the program reads. */
function addUnseenWrites(scan: Scan, place: Place): void {
  addPath(scan, literalArgument("."), { access: "edit", folder: true, below: true }, place);
}

function programDoubt(options: Options, program: Program): Doubt | undefined {
  if (program.opaque) return { reason: program.opaque };
  const dangers = dangersIn(options, program.danger);
  if (dangers.length > 0) return doubts.option(dangers);
  if (options.unsure && program.danger) return doubts.unsure;
  const setting = options.operands.find(({ text }) =>
    words(program.settings).has(/^[^=]*(?==)/.exec(text)?.[0] ?? ""),
  );
  if (setting) return doubts.option([setting.text]);
  return program.runsInput && runsItsInput(options) ? { reason: doubts.input.reason } : undefined;
}

/** A script that comes from a pipe or a process: `-`, `/dev/stdin`, `<(…)`. */
function isInput(script: Argument): boolean {
  return script.text === "-" || (script.values ?? []).some((value) => /^\/(?:dev|proc)\//.test(value.text));
}

const answersOnly = "--version -V -v --help -h --test -m --run --check";

function runsItsInput(options: Options): boolean {
  const [script] = options.operands;
  return script ? isInput(script) : !hasOption(options, answersOnly);
}

function addOptionFiles(scan: Scan, options: Options, program: Program, place: Place): void {
  const [reads, writes, uploads] = [words(program.reads), words(program.writes), words(program.uploads)];
  const fills = words(program.fills);
  for (const { name, value, isText } of options.found) {
    if (!value || isText) continue;
    if (fills.has(name)) {
      addFilled(scan, value, options.operands, place);
      continue;
    }
    if (uploads.has(name)) addUpload(scan, value, place);
    if (writes.has(name)) addPath(scan, value, { access: "edit" }, place);
    else if (reads.has(name)) addPath(scan, value, { access: "read" }, place);
    else if (!uploads.has(name))
      addVisiblePaths(scan, value, place, program.operands === undefined ? "read" : "visible");
  }
}

/** A folder gets files with the names of the sources, or with such as nobody names here. */
function addFilled(scan: Scan, folder: Argument, sources: readonly Argument[], place: Place): void {
  addPath(scan, folder, { access: "edit", folder: true, below: true }, place);
  for (const source of sources)
    for (const inside of namesInside(scan, folder, source, place))
      addPath(scan, inside, { access: "edit" }, place);
}

/** `@file`, `<file` or `name=@file;type=…`; another text is sent as it is. */
function addUpload(scan: Scan, value: Argument, place: Place): void {
  if (!value.values)
    return /[@<]/.test(value.known) || value.known === ""
      ? addPath(scan, value, { access: "read" }, place)
      : undefined;
  for (const { text } of value.values) {
    const file = /^[^@<]*[@<]([^;]+)/.exec(text)?.[1];
    if (file && !text.includes("://")) addPath(scan, literalArgument(file), { access: "read" }, place);
  }
}

function addOperands(scan: Scan, options: Options, program: Program, place: Place): void {
  const skipped = program.skip && !hasOption(options, program.instead) ? program.skip : 0;
  const operands = options.operands.slice(skipped);
  const below = program.below === "*" || hasOption(options, program.below);
  const edit: PathUse = { access: "edit", below, removes: program.removes ?? false };
  switch (program.operands) {
    case "text":
      return;
    case "address":
      return addAddresses(scan, operands, savesFiles(options, program), place);
    case "read":
      return addReads(scan, operands, program, place);
    case "write":
      return operands.forEach((file) => addPath(scan, file, edit, place));
    case "change":
      return operands.forEach((file) => addChange(scan, file, edit, place));
    case "pack":
      return operands.forEach((file, index) =>
        addPath(scan, file, index === 0 ? edit : { access: "read" }, place),
      );
    case "clone":
      return addClone(scan, operands, place);
    case "folder":
      return operands.forEach((folder) => addPath(scan, folder, { access: "visible", folder: true }, place));
    case "copy":
    case "move":
    case "link":
      return addCopies(scan, operands, program, hasOption(options, program.fills), edit, place);
    case "name":
      return operands.forEach((operand) => addVisiblePaths(scan, operand, place));
    case undefined:
      return operands.forEach((operand) => addVisiblePaths(scan, operand, place, "read"));
  }
}

function addChange(scan: Scan, file: Argument, edit: PathUse, place: Place): void {
  addPath(scan, file, { access: "read" }, place);
  addPath(scan, file, edit, place);
}

function savesFiles(options: Options, program: Program): boolean {
  if (program.saves !== "*") return hasOption(options, program.saves);
  return !hasOption(options, program.writes) && !hasOption(options, program.fills);
}

/** A file's address is read; what is fetched may be saved under the last name of its address. */
function addAddresses(scan: Scan, addresses: readonly Argument[], saves: boolean, place: Place): void {
  for (const { values = [] } of addresses) {
    for (const { text } of values) {
      const file = fileOfAddress(text);
      if (file !== undefined) addPath(scan, literalArgument(file), { access: "read" }, place);
      const name = saves ? basename(text.replace(/[?#].*$/s, "")) : "";
      if (name !== "") addPath(scan, literalArgument(name), { access: "edit" }, place);
    }
  }
}

/** The folder that is named, or one with the name of what is cloned. */
function addClone(scan: Scan, [from, to]: readonly Argument[], place: Place): void {
  if (from) addVisiblePaths(scan, from, place);
  const folders = to ? [to] : (from?.values ?? []).map(({ text }) => literalArgument(clonedName(text)));
  for (const folder of folders) addPath(scan, folder, { access: "edit", folder: true, below: true }, place);
}

function clonedName(address: string): string {
  return (
    basename(address.replace(/\/+$/, ""))
      .replace(/^.*:/, "")
      .replace(/\.git$/, "") || "."
  );
}

/** Of a program that runs a script only the script is known to be read. */
function addReads(scan: Scan, operands: readonly Argument[], program: Program, place: Place): void {
  for (const [index, file] of operands.entries()) {
    if (program.leads && index > 0) addVisiblePaths(scan, file, place);
    else addPath(scan, file, { access: "read" }, place);
  }
}

/** The last operand is written unless an option names the target; a folder gets files with the sources' names. */
function addCopies(
  scan: Scan,
  operands: readonly Argument[],
  program: Program,
  hasTarget: boolean,
  edit: PathUse,
  place: Place,
): void {
  const target = hasTarget || operands.length < 2 ? undefined : operands.at(-1);
  const sources = target ? operands.slice(0, -1) : operands;
  for (const source of sources) {
    if (/^[\w.@-]+:(?!\/\/)/.test(source.text)) continue;
    addPath(scan, source, { access: "read" }, place);
    if (program.operands === "move") addPath(scan, source, edit, place);
  }
  if (!target || /^[\w.@-]+:/.test(target.text)) return;
  addPath(scan, target, { ...edit, removes: false }, place);
  for (const source of sources)
    for (const inside of namesInside(scan, target, source, place))
      addPath(scan, inside, { ...edit, removes: false }, place);
}

/** `cp x/.env folder` may write `folder/.env`; `cp -r x/. folder` and `cp x/* folder` what lies in `x` now. */
function namesInside(scan: Scan, target: Argument, source: Argument, place: Place): Argument[] {
  if (!target.values || !source.values) return [];
  const names = source.values.flatMap((value) => [
    { text: basename(value.text), glob: value.glob },
    ...namesBelow(scan, value, place).map((text) => ({ text, glob: false })),
  ]);
  return target.values.flatMap((folder) =>
    names.map((name): Argument => {
      const text = `${folder.text.replace(/\/+$/, "") || "/"}/${name.text}`;
      return { ...literalArgument(text), values: [{ text, glob: folder.glob || name.glob }] };
    }),
  );
}

/** Names in a folder that is copied with what it holds (`x/`, `x/.`, `x/*`). */
function namesBelow(scan: Scan, { text }: Value, { bases }: Place): readonly string[] {
  const folder = /^(.*?)\/+(?:\.|\*|)$/s.exec(text)?.[1];
  if (folder === undefined || /[*?]/.test(folder)) return [];
  const from = isAbsolute(text) ? ["/"] : (bases ?? []);
  return from.flatMap((base) => scan.context.list?.(scan.realPath(base, folder || "/")) ?? []);
}

function describeGit(
  scan: Scan,
  args: readonly Argument[],
  _command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  const before = readOptions(args, git);
  addOptionFiles(scan, before, git, place);
  const dangers = dangersIn(before, git.danger);
  const [subcommand] = before.operands;
  if (dangers.length > 0) return doubts.option(dangers);
  if (!subcommand) return undefined;
  if (!subcommand.values || subcommand.splits) return doubts.unsure;
  const rest = before.operands.slice(1);
  const program = gitCommandOf(subcommand.text);
  if (subcommand.text === "checkout") addCheckedOut(scan, rest, place);
  const doubt = describeProgram(scan, rest, program, place) ?? gitWordDoubt(subcommand.text, rest, program);
  if (doubt === doubts.gitConfig) addPath(scan, literalArgument(".git/config"), { access: "edit" }, place);
  return doubt;
}

/** `git checkout -- a` overwrites `a`. */
function addCheckedOut(scan: Scan, args: readonly Argument[], place: Place): void {
  const dashes = args.findIndex(({ text }) => text === "--");
  const files = dashes === -1 ? [] : args.slice(dashes + 1);
  for (const file of files) addPath(scan, file, { access: "edit", below: true }, place);
}

/** Words that are no options and yet make git run something. */
function gitWordDoubt(subcommand: string, rest: readonly Argument[], program: Program): Doubt | undefined {
  const named = rest.find((arg) => words(program.danger).has(arg.text));
  if (named && !named.text.startsWith("-")) return doubts.option([named.text]);
  if (rest.some((arg) => /^(?:ext|fd)::/.test(arg.text)))
    return { reason: "a remote of this kind runs a command" };
  const onlyReads = rest.some((arg) => gitConfigReads.includes(arg.text));
  if (subcommand === "config" && !onlyReads && rest.filter((arg) => !arg.text.startsWith("-")).length !== 1) {
    return doubts.gitConfig;
  }
  return undefined;
}

/** Tests of find that run or write: `;` or `+` ends the command of the first four. */
const findRuns = new Set(["-exec", "-execdir", "-ok", "-okdir"]);
const findWrites = new Set(["-fprint", "-fprint0", "-fprintf", "-fls"]);

function describeFind(
  scan: Scan,
  args: readonly Argument[],
  command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  const firstTest = args.findIndex((arg) => /^(?:-(?![HLPDO])|[(!])/.test(arg.text));
  const starts = (firstTest === -1 ? args : args.slice(0, firstTest)).filter(
    (arg) => !arg.text.startsWith("-"),
  );
  const tests = firstTest === -1 ? [] : args.slice(firstTest);
  for (const start of starts) addPath(scan, start, { access: "visible", folder: true }, place);
  const found: string[] = [];
  for (const [index, arg] of tests.entries()) {
    const next = tests[index + 1];
    if (findRuns.has(arg.text))
      addCommand(scan, findCommand(tests.slice(index + 1), command), inFoundFolder(arg.text, place));
    if (findWrites.has(arg.text) && next) addPath(scan, next, { access: "edit" }, place);
    if (/^-(?:newer\w*|anewer|cnewer|samefile|files0-from)$/.test(arg.text) && next)
      addPath(scan, next, { access: "read" }, place);
    if (arg.text === "-delete") addDeletions(scan, starts, !tests.some(isNarrowing), place);
    if (findRuns.has(arg.text) || findWrites.has(arg.text) || arg.text === "-delete") found.push(arg.text);
  }
  if (found.length > 0) return doubts.option([...new Set(found)]);
  return args.some((arg) => !arg.values && arg.known === "") ? doubts.unsure : undefined;
}

function findCommand(words: readonly Argument[], command: SimpleCommand): SimpleCommand {
  const end = words.findIndex((word) => word.text === ";" || word.text === "+");
  const argv = (end === -1 ? words : words.slice(0, end)).map((word) => {
    return word.text.includes("{}")
      ? { ...word, values: undefined, known: word.text.startsWith("{}") ? "./" : word.text }
      : word;
  });
  return { ...command, argv, raw: canonicalText(argv), assignments: [] };
}

function inFoundFolder(option: string, place: Place): Place {
  const within = { ...place, depth: place.depth + 1 };
  return option.endsWith("dir") ? { ...within, bases: undefined } : within;
}

/** Tests of find that leave something out. */
function isNarrowing({ text }: Argument): boolean {
  return /^-(?:i?l?name|i?path|i?wholename|i?regex|[acm](?:time|min)|newer\w*|size|empty|user|group|perm)$/.test(
    text,
  );
}

function addDeletions(scan: Scan, starts: readonly Argument[], removes: boolean, place: Place): void {
  const folders = starts.length > 0 ? starts : [literalArgument(".")];
  for (const folder of folders)
    addPath(scan, folder, { access: "edit", folder: true, below: true, removes }, place);
}

function describeDd(scan: Scan, args: readonly Argument[], _command: SimpleCommand, place: Place): undefined {
  for (const arg of args) {
    const [, key, file] = /^(if|of)=(.*)$/s.exec(arg.text) ?? [];
    if (!key || file === undefined) continue;
    const values = arg.values?.map((value) => ({ ...value, text: value.text.slice(3) }));
    addPath(scan, { ...arg, text: file, values }, { access: key === "of" ? "edit" : "read" }, place);
  }
}

function describeEval(
  _scan: Scan,
  args: readonly Argument[],
  _command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  return runTexts(args, place);
}

/** Joined by blanks and read as shell text, where all of it is known. */
function runTexts(args: readonly Argument[], place: Place): Doubt | undefined {
  const texts = args.map((arg) =>
    arg.values?.length === 1 && !arg.splits ? arg.values[0]?.text : undefined,
  );
  if (!texts.every((text) => text !== undefined)) return doubts.unseen;
  place.runText(texts.join(" "));
  return undefined;
}

function describeTrap(
  _scan: Scan,
  args: readonly Argument[],
  _command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  const [action] = args.filter((arg) => arg.text !== "--");
  return !action || /^-[lp]?$/.test(action.text) ? undefined : runTexts([action], place);
}

function describeSource(scan: Scan, args: readonly Argument[], _command: SimpleCommand, place: Place): Doubt {
  const [file] = args;
  if (file) addPath(scan, file, { access: "read" }, place);
  return { reason: "it runs the shell text of a file", unseen: true };
}

function describeShell(
  scan: Scan,
  args: readonly Argument[],
  _command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  const options = readOptions(args.map(withDash), {
    leads: true,
    values: "-O -o --rcfile --init-file",
    texts: "-c",
  });
  const hasText = options.found.some((option) => option.name === "-c");
  if (dangersIn(options, "--rcfile --init-file -i -l --login").some((name) => name.endsWith("file")))
    return doubts.unseen;
  if (!hasText && hasOption(options, "--version --help")) return undefined;
  if (hasOption(options, "-O")) return doubts.unseen;
  if (hasText) return runShellText(args, place);
  const [script] = options.operands;
  if (!script || hasOption(options, "-s") || isInput(script)) return doubts.input;
  addPath(scan, script, { access: "read" }, place);
  for (const arg of args) addVisiblePaths(scan, arg, place);
  return script.values ? undefined : doubts.unseen;
}

/** `+e` stands among the options of a shell as `-e` does. */
function withDash(arg: Argument): Argument {
  return /^\+[A-Za-z]+$/.test(arg.text) ? literalArgument(`-${arg.text.slice(1)}`) : arg;
}

/** The text of `-c` is the first word that is no option, wherever `-c` stood. */
function runShellText(args: readonly Argument[], place: Place): Doubt | undefined {
  let next = 0;
  while (/^[-+]/.test(args[next]?.text ?? ""))
    next += /^[-+][A-Za-z]*[oO]$/.test(args[next]?.text ?? "") ? 2 : 1;
  const text = args[next];
  return text ? runTexts([text], place) : doubts.input;
}

function describeWrapper(
  scan: Scan,
  args: readonly Argument[],
  wrapper: Wrapper,
  command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  const options = readOptions(args, { ...wrapper, leads: true });
  for (const { value } of options.found) if (value) addVisiblePaths(scan, value, place);
  const dangers = dangersIn(options, wrapper.danger);
  if (dangers.length > 0)
    addUnknownPath(scan, canonicalText(command.argv), { access: "visible" }, doubts.option(dangers).reason);
  if (options.operands.length === 0 || hasOption(options, wrapper.looks))
    return dangers.length > 0 ? doubts.option(dangers) : undefined;
  const marks = options.found.flatMap(({ name, value }) =>
    /^-(?:I|-replace)$/.test(name) && value ? [value.text] : [],
  );
  const inner = wrappedCommand(options.operands, wrapper, ["{}", ...marks], command);
  if (wrapper.builds) return { reason: "it builds commands from its input", unseen: true };
  const doubt = wrapper.joins ? runTexts(inner.argv, place) : undefined;
  if (!wrapper.joins && inner.argv.length > 0) addCommand(scan, inner, { ...place, depth: place.depth + 1 });
  if (dangers.length > 0) return doubts.option(dangers);
  const [unknown] = unknownIn(options, wrapper.values, wrapper.flags, wrapper.looks, wrapper.danger);
  if (unknown)
    return { reason: `${unknown} may take the next word, so that the command is not known`, unseen: true };
  return doubt ?? assignmentDoubt(inner) ?? (options.unsure ? doubts.unsure : undefined);
}

function wrappedCommand(
  operands: readonly Argument[],
  wrapper: Wrapper,
  marks: readonly string[],
  command: SimpleCommand,
): SimpleCommand {
  let rest = operands.slice(wrapper.skip ?? 0);
  const assignments: ShellAssignment[] = [];
  while (wrapper.assigns && /^\w+=/.test(rest[0]?.text ?? "")) {
    const [word] = rest;
    if (word) assignments.push(toAssignment(word));
    rest = rest.slice(1);
  }
  const argv =
    wrapper.appends && rest.length > 0
      ? [...rest.map((word) => replaced(word, marks)), unknownArguments]
      : rest;
  const shown = argv.filter((arg) => arg !== unknownArguments);
  return { ...command, argv, assignments, raw: canonicalText(shown) };
}

/** A word in which the wrapper puts what it reads. */
function replaced(word: Argument, marks: readonly string[]): Argument {
  const mark = marks.find((mark) => word.text.includes(mark));
  return mark === undefined
    ? word
    : { ...word, values: undefined, known: word.text.slice(0, word.text.indexOf(mark)) };
}

function toAssignment(word: Argument): ShellAssignment {
  const equals = word.text.indexOf("=");
  const name = word.text.slice(0, equals).replace(/[+[].*$/, "");
  const only = word.values?.length === 1 ? word.values[0]?.text : undefined;
  return { name, text: word.text, value: only?.slice(equals + 1) };
}

function describeSed(
  scan: Scan,
  args: readonly Argument[],
  _command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  const program: Program = programOf("sed") ?? {};
  const options = readOptions(args, program);
  const inPlace = hasOption(options, "-i --in-place");
  addOptionFiles(scan, options, program, place);
  addOperands(scan, options, inPlace ? { ...program, operands: "change" } : program, place);
  return programDoubt(options, program) ?? sedDoubt(scan, options, program, place);
}

function sedDoubt(scan: Scan, options: Options, program: Program, place: Place): Doubt | undefined {
  const given = options.found.filter(
    ({ name }) => words(program.texts).has(name) && /^-(?:e|-expression)$/.test(name),
  );
  const scripts = given.length > 0 ? given.map((option) => option.value) : options.operands.slice(0, 1);
  for (const script of scripts) {
    const text = script?.values?.length === 1 ? script.values[0]?.text : undefined;
    if (text === undefined) return { reason: "sed's script cannot be known before it runs" };
    const effects = readSedScript(text);
    for (const file of effects.writes) addPath(scan, literalArgument(file), { access: "edit" }, place);
    for (const file of effects.reads) addPath(scan, literalArgument(file), { access: "read" }, place);
    if (effects.opaque) return { reason: effects.opaque };
  }
  return undefined;
}

function describeAwk(
  scan: Scan,
  args: readonly Argument[],
  _command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  const program: Program = programOf("awk") ?? {};
  const doubt = describeProgram(scan, args, program, place);
  if (doubt) return doubt;
  const [script] = readOptions(args, program).operands;
  const text = script?.values?.length === 1 ? script.values[0]?.text : undefined;
  const reason = text === undefined ? "awk's program cannot be known before it runs" : opaqueAwk(text);
  return reason ? { reason } : undefined;
}

function describeDeclaration(
  scan: Scan,
  args: readonly Argument[],
  command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  const assignments = args.filter((arg) => /^\w+\+?=/.test(arg.text)).map(toAssignment);
  for (const arg of args) addVisiblePaths(scan, arg, place);
  const array = args.find((arg) => /=\(/.test(arg.text) && /[$`]/.test(arg.text));
  if (array) return { reason: "the shell evaluates the text of the array" };
  const evaluated = command.argv[0]?.text !== "export" && args.find((arg) => /^-\w*[in]/.test(arg.text));
  if (evaluated) return { reason: "the shell evaluates what such variables are set to" };
  return assignmentDoubt({ ...command, assignments }) ?? describeSubscripts(scan, args, command);
}

/** These evaluate the text in `name[…]`, which may run a command. */
function describeTest(
  scan: Scan,
  args: readonly Argument[],
  command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  return describeSubscripts(scan, args, command) ?? describeProgram(scan, args, programOf("test"), place);
}

function describeSubscripts(
  _scan: Scan,
  args: readonly Argument[],
  { argv }: SimpleCommand,
): Doubt | undefined {
  const inner = argv[0]?.text === "[" ? args.slice(0, -1) : args;
  const names = /^(?:test|\[)$/.test(argv[0]?.text ?? "") ? namesTested(inner) : inner;
  const evaluates =
    inner.some((arg) => /^\w+\[/.test(arg.text) || (argv[0]?.text === "let" && /[[$`]/.test(arg.text))) ||
    names.some((arg) => !arg.values && arg.known === "");
  return evaluates ? doubts.subscript : undefined;
}

/** The names behind `-v`; others are texts to a test. */
function namesTested(args: readonly Argument[]): Argument[] {
  return args.filter((_, index) => /^-[vR]$/.test(args[index - 1]?.text ?? ""));
}

function describePrintf(scan: Scan, args: readonly Argument[], command: SimpleCommand): Doubt | undefined {
  const [first, second] = args;
  if (first?.text === "-v") return describeSubscripts(scan, second ? [second] : [], command);
  return first?.text.startsWith("-v") ? doubts.subscript : undefined;
}

function describeMapfile(scan: Scan, args: readonly Argument[], command: SimpleCommand): Doubt | undefined {
  const runs = args.some((arg) => arg.text.startsWith("-C"));
  return runs ? doubts.unseen : describeSubscripts(scan, args, command);
}

/** Its first word may be options without a dash; extracting writes below the folder it runs in. */
function describeTar(
  scan: Scan,
  args: readonly Argument[],
  _command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  const program: Program = { ...programOf("tar"), texts: `${programOf("tar")?.texts ?? ""} -f --file` };
  const options = readOptions(unbundled(args, program), program);
  addOptionFiles(scan, options, program, place);
  const mode = options.found.map(({ name }) => name);
  const extracts = mode.some((name) => /^-(?:x|-extract|-get)$/.test(name));
  const creates = mode.some((name) => /^-(?:c|r|u|A|-create|-append|-update|-delete)$/.test(name));
  for (const { name, value } of options.found) {
    if (value && /^-(?:f|-file)$/.test(name))
      addPath(scan, value, { access: creates ? "edit" : "read" }, place);
    if (value && /^-(?:C|-directory)$/.test(name))
      addPath(scan, value, { access: extracts ? "edit" : "visible", folder: true, below: true }, place);
  }
  if (extracts && !hasOption(options, "-C --directory")) addUnseenWrites(scan, place);
  for (const operand of options.operands) if (!extracts) addPath(scan, operand, { access: "read" }, place);
  return programDoubt(options, program);
}

/** `xfC a folder` as `-x -f a -C folder`: letters without a dash take the words behind them in their order. */
function unbundled(args: readonly Argument[], program: Program): readonly Argument[] {
  const [first, ...rest] = args;
  if (!first || !/^[A-Za-z]+$/.test(first.text)) return args;
  const valued = new Set(
    [program.values, program.texts, program.reads, program.writes].flatMap((list) => [...words(list)]),
  );
  let next = 0;
  const options = first.text.split("").flatMap((letter) => {
    const option = literalArgument(`-${letter}`);
    const value = valued.has(option.text) ? rest[next++] : undefined;
    return value ? [option, value] : [option];
  });
  return [...options, ...rest.slice(next)];
}

/** `--arg name text` takes two words; the second of `--slurpfile name file` is read. */
function describeJq(
  scan: Scan,
  args: readonly Argument[],
  _command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  const rest: Argument[] = [];
  for (let next = 0; next < args.length; next++) {
    const arg = args[next];
    if (!arg) break;
    const file = args[next + 2];
    if (/^--(?:slurpfile|rawfile|argfile)$/.test(arg.text) && file)
      addPath(scan, file, { access: "read" }, place);
    if (/^--(?:slurpfile|rawfile|argfile|arg|argjson)$/.test(arg.text)) next += 2;
    else rest.push(arg);
  }
  return describeProgram(scan, rest, programOf("jq"), place);
}

/** What stands behind `-x` is a command that gets what was found. */
function describeFd(
  scan: Scan,
  args: readonly Argument[],
  command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  const runs = args.findIndex(({ text }) => /^(?:-[xX]|--exec(?:-batch)?)$/.test(text));
  const inner = findCommand(args.slice(runs + 1), command);
  if (runs !== -1)
    addCommand(
      scan,
      { ...inner, argv: [...inner.argv, unknownArguments] },
      { ...place, depth: place.depth + 1 },
    );
  return describeProgram(scan, runs === -1 ? args : args.slice(0, runs + 1), programOf("fd"), place);
}

/** Only its copying names files; other words are often names with a slash. */
function describeAws(
  scan: Scan,
  args: readonly Argument[],
  _command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  return describeProgram(scan, args, args[0]?.text === "s3" ? undefined : programOf("gcloud"), place);
}

/** A shell that knows aliases runs their text where the name stands next. */
function describeAlias(
  _scan: Scan,
  args: readonly Argument[],
  _command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  for (const arg of args.filter(({ text }) => text.includes("="))) {
    const [value, ...others] = arg.values ?? [];
    if (!value || others.length > 0) return doubts.unseen;
    place.runText(value.text.slice(value.text.indexOf("=") + 1));
  }
  return undefined;
}

/** A word that is no format sets the clock. */
function describeDate(
  scan: Scan,
  args: readonly Argument[],
  _command: SimpleCommand,
  place: Place,
): Doubt | undefined {
  const program = programOf("date") ?? {};
  const doubt = describeProgram(scan, args, program, place);
  const setsClock = readOptions(args, program).operands.some(({ text }) => /^\d/.test(text));
  return doubt ?? (setsClock ? { reason: "it sets the clock" } : undefined);
}
