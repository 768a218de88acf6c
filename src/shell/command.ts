import { basename, join, relative } from "node:path";
import { alwaysPattern, isNamedByWords, runnerWords } from "./arity.ts";
import { describe } from "./describe.ts";
import { assignmentDoubt } from "./opaque-reason.ts";
import type { OpaqueReason } from "./opaque-reason.ts";
import { cdTargets } from "./syntax/working-dirs.ts";
import { git } from "./programs/git.ts";
import { readOptions } from "./programs/options.ts";
import type { EvalContext, Scan, ShellPart, SimpleCommand } from "./part.ts";
import { addPath, addUnknownPath, mayBeOption } from "./syntax/paths.ts";
import { programOf } from "./programs/program-table.ts";
import { asGiven, asUnknown, canonicalText, knownText, literalArgument } from "./syntax/word.ts";
import type { Argument } from "./syntax/word.ts";

/** Commands that run each other (`sudo env nice …`) deeper than this are asked for as a whole. */
const wrapLimit = 32;

/** Adds everything that a simple command does, and what the command does that it wraps. */
export function addCommand(scan: Scan, command: SimpleCommand, place: EvalContext): void {
  if (place.depth > wrapLimit) throw new Error(`commands wrap each other more than ${wrapLimit} deep`);
  const name = commandName(command);
  if (typeof name !== "string") return addBash(scan, command, name, place);
  if (isSteering(name, command)) return addSteering(scan, command, place);
  const given = command.argv.slice(1).map(asGiven);
  const args = given.map((arg) => (mayBeOption(scan, arg, place) ? asUnknown(arg) : arg));
  const others = assignmentDoubt(command) ?? folderDoubt(command, place);
  const own = describe(name, { scan, command, args, place });
  const interpreted = own && others === undefined && programOf(name)?.interprets === true;
  addBash(scan, command, interpreted ? { ...own, interpreter: name } : (own ?? others), place);
}

/** The name without its folder, or why it cannot be known. */
function commandName({ argv }: SimpleCommand): string | OpaqueReason {
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

/** `cd` beside other commands changes nothing but where they run: its folder is judged, and what is said of `cd` itself. */
function isSteering(name: string, command: SimpleCommand): boolean {
  return name === "cd" && command.argv[0]?.text === "cd" && command.assignments.length === 0;
}

function addSteering(scan: Scan, { argv, raw }: SimpleCommand, place: EvalContext): void {
  for (const folder of cdTargets(argv.slice(1)))
    addPath(scan, folder, { access: "visible", folder: true }, place);
  const text = canonicalText(argv);
  const also = raw === text ? [] : [raw];
  scan.add({
    permission: "bash",
    text,
    also,
    steers: true,
    reason: `changes the folder by ${text}`,
    always: [],
  });
}

function addBash(
  scan: Scan,
  command: SimpleCommand,
  doubt: OpaqueReason | undefined,
  place: EvalContext,
): void {
  const argv = fromRulesFolder(scan, command.argv, place);
  const text = canonicalText(argv);
  const becomes = patternOf(command.argv);
  const part: ShellPart = {
    permission: "bash",
    text,
    also: otherSpellings(command, text),
    ...(becomes !== undefined && { becomes }),
    reason: doubt ? `runs ${text}, but ${doubt.reason}` : `runs ${text}`,
    always: doubt ? [] : alwaysPattern(argv),
    ...(doubt && { opaque: doubt.reason }),
    ...(doubt?.options && { options: doubt.options }),
    ...(doubt?.interpreter !== undefined && { interpreter: doubt.interpreter }),
  };
  scan.add(part);
  if (doubt?.unseen) addUnknownPath(scan, text, { access: "visible" }, doubt.reason);
}

/** `./a` is another program in each folder: rules know it by its path from theirs. */
function fromRulesFolder(
  scan: Scan,
  argv: readonly Argument[],
  { bases = [] }: EvalContext,
): readonly Argument[] {
  const [program, ...args] = argv;
  const { cwd } = scan.context;
  const base = bases.find((one) => one !== cwd);
  if (!program || !isRelativePath(program) || base === undefined) return argv;
  const path = relative(cwd, join(base, program.text));
  return [literalArgument(path.startsWith("..") ? join(base, program.text) : `./${path}`), ...args];
}

function folderDoubt({ argv: [program] }: SimpleCommand, { bases }: EvalContext): OpaqueReason | undefined {
  if (!program || bases || !isRelativePath(program)) return undefined;
  return { reason: "the folder of its program cannot be known before it runs" };
}

function isRelativePath(word: Argument): boolean {
  return word.text.includes("/") && !/^[/~]/.test(word.text) && knownText(word) === word.text;
}

/** What the words may be when they run, where one of them is not known as it stands. */
function patternOf([name, ...args]: readonly Argument[]): string | undefined {
  if (!name || args.every((arg) => knownText(arg) !== undefined)) return undefined;
  return basename(name.text) + args.map(wordPattern).join("");
}

/** With the blank before it; a word that may become none takes the blank with it. */
function wordPattern({ values, known, splits }: Argument): string {
  const [only, ...others] = values ?? [];
  if (!only) return splits && known === "" ? "*" : ` ${known.replaceAll("?", "*")}*`;
  return others.length === 0 && !only.names ? ` ${only.text.replaceAll("?", "*")}` : " *";
}

/** Spellings in which a person may have forbidden the same command. */
function otherSpellings({ argv, raw, assignments }: SimpleCommand, text: string): string[] {
  const known = argv.filter((arg) => arg.isAdded !== true).map(asGiven);
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
