import { basename, join, relative } from "node:path/posix";
import { createAlwaysPatterns, isNamedByWords, countRunnerWords } from "./arity.ts";
import { describe } from "./describe.ts";
import { findAssignmentReason } from "./opaque-reason.ts";
import type { OpaqueReason } from "./opaque-reason.ts";
import { findCdTarget } from "./syntax/working-dirs.ts";
import { gitProgram } from "./programs/git.ts";
import { parseOptions } from "./programs/options.ts";
import type { EvalContext, Scan, ShellEffect, SimpleCommand } from "./facts.ts";
import { addPath, addUnknownPath, mayBeOption } from "./syntax/paths.ts";
import { findProgram } from "./programs/program-table.ts";
import { findReversibility } from "./reversibility/reversibility.ts";
import type { Reversibility } from "./reversibility/forms.ts";
import { findProjectScripts, findScriptText, judgeScriptNames } from "./reversibility/project-scripts.ts";
import {
  resolveArgument,
  toUnknownArgument,
  canonicalText,
  knownText,
  literalArgument,
} from "./syntax/word.ts";
import type { Argument } from "./syntax/word.ts";

/** Maximum depth of wrapped commands (`sudo env nice …`); above, the whole line is opaque. */
const wrapLimit = 32;

/** Adds the effects of a simple command and of the commands it wraps. */
export function addCommand(scan: Scan, command: SimpleCommand, evalContext: EvalContext): void {
  if (evalContext.depth > wrapLimit) throw new Error(`commands wrap each other more than ${wrapLimit} deep`);
  const name = parseCommandName(command);
  if (typeof name !== "string") return addBash(scan, command, { doubt: name }, evalContext);
  if (isDirectoryChange(name, command)) return addDirectoryChange(scan, command, evalContext);
  const given = command.argv.slice(1).map(resolveArgument);
  const args = given.map((arg) => (mayBeOption(scan, arg, evalContext) ? toUnknownArgument(arg) : arg));
  const others = findAssignmentReason(command) ?? findFolderReason(command, evalContext);
  const own = describe(name, { scan, command, args, evalContext });
  const interpreted = own && others === undefined && findProgram(name)?.interpretsCode === true;
  const doubt = interpreted ? { ...own, interpreter: name } : (own ?? others);
  const known = findReversibility(name, args, { input: evalContext.inputText });
  const reversibility = known === "unknown" ? judgeScripts(scan, name, args, evalContext) : known;
  addBash(scan, command, { doubt, reversibility }, evalContext);
}

/** Judges the scripts of the project that a command runs, by their text and name. */
function judgeScripts(
  scan: Scan,
  name: string,
  args: readonly Argument[],
  evalContext: EvalContext,
): Reversibility {
  const scripts = findProjectScripts(name, args);
  if (scripts === undefined) return "unknown";
  const { workingDirs } = evalContext;
  const folder = workingDirs?.length === 1 ? workingDirs[0] : undefined;
  const file =
    folder === undefined
      ? undefined
      : scripts.files
          .map((one) => scan.context.readText?.(join(folder, one)))
          .find((one) => one !== undefined);
  const text = file === undefined ? undefined : findScriptText(scripts, file);
  const found =
    (text === undefined ? undefined : evalContext.findIrreversible(text)) ?? judgeScriptNames(scripts);
  return found === undefined ? "unknown" : { irreversible: found };
}

/** Returns the name without its folder, or why it is unknown. */
function parseCommandName({ argv }: SimpleCommand): string | OpaqueReason {
  const [word] = argv;
  const [value, ...others] = word?.values ?? [];
  if (!word || !value || others.length > 0 || value.glob || word.splits) {
    return { reason: "the command's name cannot be known before it runs", runsUnknownText: true };
  }
  if (value.text !== word.text && !word.text.startsWith("~/")) {
    return { reason: "the command's name comes from a variable", runsUnknownText: true };
  }
  if (!/^[\w./@+%:,~[\]][\w./@+%:,~[\]-]*$/.test(value.text))
    return { reason: "the command's name is odd", runsUnknownText: true };
  return basename(value.text);
}

/** Whether the command is a plain `cd`, which only changes where other commands run. */
function isDirectoryChange(name: string, command: SimpleCommand): boolean {
  return name === "cd" && command.argv[0]?.text === "cd" && command.assignments.length === 0;
}

function addDirectoryChange(scan: Scan, { argv, raw }: SimpleCommand, evalContext: EvalContext): void {
  for (const folder of findCdTarget(argv.slice(1)))
    addPath(scan, folder, { access: "visible", folder: true }, evalContext);
  const text = canonicalText(argv);
  const also = raw === text ? [] : [raw];
  scan.add({
    type: "run",
    text,
    also,
    changesDirectory: true,
    reason: `changes the folder by ${text}`,
    similar: [],
  });
}

function addBash(
  scan: Scan,
  command: SimpleCommand,
  { doubt, reversibility = "unknown" }: { doubt: OpaqueReason | undefined; reversibility?: Reversibility },
  evalContext: EvalContext,
): void {
  const irreversible = typeof reversibility === "object" ? reversibility.irreversible : undefined;
  const argv = rebaseProgram(scan, command.argv, evalContext);
  const text = canonicalText(argv);
  const becomes = createPattern(command.argv);
  const part: ShellEffect = {
    type: "run",
    text,
    also: listOtherSpellings(command, text),
    ...(becomes !== undefined && { becomes }),
    reason: doubt ? `runs ${text}, but ${doubt.reason}` : `runs ${text}`,
    similar: doubt ? [] : createAlwaysPatterns(argv, irreversible !== undefined),
    ...(doubt && { opaque: doubt.reason }),
    ...(irreversible !== undefined && { irreversible }),
    ...(reversibility === "unknown" && { hasUnknownEffects: true }),
    ...(doubt?.options && { options: doubt.options }),
    ...(doubt?.interpreter !== undefined && { interpreter: doubt.interpreter }),
  };
  scan.add(part);
  if (doubt?.runsUnknownText) addUnknownPath(scan, text, { access: "visible" }, doubt.reason);
}

/** Rewrites `./a` relative to the folder of the rules, because it names another program in each folder. */
function rebaseProgram(
  scan: Scan,
  argv: readonly Argument[],
  { workingDirs = [] }: EvalContext,
): readonly Argument[] {
  const [program, ...args] = argv;
  const { cwd } = scan.context;
  const base = workingDirs.find((one) => one !== cwd);
  if (!program || !isRelativePath(program) || base === undefined) return argv;
  const path = relative(cwd, join(base, program.text));
  return [literalArgument(path.startsWith("..") ? join(base, program.text) : `./${path}`), ...args];
}

function findFolderReason(
  { argv: [program] }: SimpleCommand,
  { workingDirs }: EvalContext,
): OpaqueReason | undefined {
  if (!program || workingDirs || !isRelativePath(program)) return undefined;
  return { reason: "the folder of its program cannot be known before it runs" };
}

function isRelativePath(word: Argument): boolean {
  return word.text.includes("/") && !/^[/~]/.test(word.text) && knownText(word) === word.text;
}

/** Returns a pattern of the texts that the command may become; undefined if all words are known. */
function createPattern([name, ...args]: readonly Argument[]): string | undefined {
  if (!name || args.every((arg) => knownText(arg) !== undefined)) return undefined;
  return basename(name.text) + args.map(createWordPattern).join("");
}

/** Includes the blank before the word, which disappears if the word may be empty. */
function createWordPattern({ values, known, splits }: Argument): string {
  const [only, ...others] = values ?? [];
  if (!only) return splits && known === "" ? "*" : ` ${known.replaceAll("?", "*")}*`;
  return others.length === 0 && !only.names ? ` ${only.text.replaceAll("?", "*")}` : " *";
}

/** Lists other spellings under which a rule may deny the command. */
function listOtherSpellings({ argv, raw, assignments }: SimpleCommand, text: string): string[] {
  const known = argv.filter((arg) => arg.isAdded !== true).map(resolveArgument);
  const values = known.map((arg) => (arg.values?.length === 1 ? (arg.values[0]?.text ?? "") : arg.text));
  const named = [basename(values[0] ?? "").replace(/\.exe$/i, ""), ...values.slice(1)];
  const spellings = [
    raw,
    values.join(" "),
    named.join(" "),
    ...assignments.map((assignment) => assignment.text),
  ];
  const plain = omitLeadingOptions(named[0] ?? "", known.slice(1));
  if (plain) spellings.push(plain);
  spellings.push(...findRunnerCommand(named));
  return [...new Set(spellings)].filter((spelling) => spelling !== text && spelling !== "");
}

/** Omits the options before a subcommand: `git -C a push` is also `git push`. */
function omitLeadingOptions(name: string, args: readonly Argument[]): string | undefined {
  const program = name === "git" ? gitProgram : findProgram(name);
  if (!args[0]?.text.startsWith("-") || !isNamedByWords(name)) return undefined;
  const { operands } = parseOptions(args, { ...program, stopsAtFirstOperand: true });
  return [name, ...operands.map((arg) => arg.text)].join(" ");
}

/** Returns the command after a runner and its options: `pnpm exec rm a` runs `rm a`. */
function findRunnerCommand(values: readonly string[]): string[] {
  const count = countRunnerWords(values[0] ?? "", values[1] ?? "");
  if (count === 0) return [];
  const rest = values.slice(count);
  const first = rest.findIndex((value) => !value.startsWith("-"));
  return first === -1 ? [] : [rest.slice(first).join(" ")];
}
