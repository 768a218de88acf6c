import { opaqueReasons } from "../opaque-reason.ts";
import type { OpaqueReason } from "../opaque-reason.ts";
import { findFlags, hasFlag, parseOptions } from "../programs/options.ts";
import type { Invocation, EvalContext } from "../facts.ts";
import { dialectOf, type ShellDialect } from "../syntax/dialect.ts";
import { addPath, addVisiblePaths } from "../syntax/paths.ts";
import { isInput } from "../programs/program.ts";
import { knownText, literalArgument } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";

const shells = new Set(
  "sh bash dash zsh ksh mksh ash fish csh tcsh rbash pwsh powershell nu elvish xonsh".split(" "),
);

export function isShell(name: string): boolean {
  return shells.has(name.replace(/\.exe$/i, ""));
}

export function describeShell(
  { scan, args, evalContext }: Invocation,
  name: string,
): OpaqueReason | undefined {
  const dialect = dialectOf(name);
  const options = parseOptions(args.map(replacePlus), {
    stopsAtFirstOperand: true,
    valueFlags: "-O -o --rcfile --init-file",
    textFlags: "-c",
  });
  const hasText = options.flags.some((option) => option.name === "-c");
  if (findFlags(options, "--rcfile --init-file -i -l --login").some((name) => name.endsWith("file")))
    return opaqueReasons.unseen;
  if (!hasText && hasFlag(options, "--version --help")) return undefined;
  if (hasFlag(options, "-O")) return opaqueReasons.unseen;
  if (hasText) return runShellText(args, evalContext, dialect);
  const [script] = options.operands;
  if (!script || hasFlag(options, "-s") || isInput(script)) return describeInput(evalContext, dialect);
  addPath(scan, script, { access: "read" }, evalContext);
  for (const arg of args) addVisiblePaths(scan, arg, evalContext);
  return script.values ? undefined : opaqueReasons.unseen;
}

/** Analyzes the input as far as the line shows it. It may not be all of it, so that the command stays opaque. */
function describeInput(evalContext: EvalContext, dialect: ShellDialect): OpaqueReason {
  try {
    if (evalContext.inputText !== undefined) evalContext.runText(evalContext.inputText, dialect);
  } catch {
    // The shown part alone is not shell text.
  }
  return opaqueReasons.input;
}

/** Replaces the plus of a shell option: `+e` is parsed as `-e`. */
function replacePlus(arg: Argument): Argument {
  return /^\+[A-Za-z]+$/.test(arg.text) ? literalArgument(`-${arg.text.slice(1)}`) : arg;
}

/** Runs the text of `-c`: the first word that is not an option, wherever `-c` is. */
function runShellText(
  args: readonly Argument[],
  evalContext: EvalContext,
  dialect: ShellDialect,
): OpaqueReason | undefined {
  let next = 0;
  while (/^[-+]/.test(args[next]?.text ?? ""))
    next += /^[-+][A-Za-z]*[oO]$/.test(args[next]?.text ?? "") ? 2 : 1;
  const text = args[next];
  return text ? runTexts([text], evalContext, dialect) : opaqueReasons.input;
}

/** If the text is unknown, the words are added as a command as well. */
export function describeEval({ scan, args, command, evalContext }: Invocation): OpaqueReason | undefined {
  const doubt = runTexts(args, evalContext);
  if (doubt && args.length > 0)
    scan.addWrapped({ argv: args, raw: command.raw, assignments: command.assignments }, evalContext);
  return doubt;
}

export function describeTrap({ args, evalContext }: Invocation): OpaqueReason | undefined {
  const [action] = args.filter((arg) => arg.text !== "--");
  return !action || /^-[lp]?$/.test(action.text) ? undefined : runTexts([action], evalContext);
}

export function describeSource({ scan, args, evalContext }: Invocation): OpaqueReason {
  const [file] = args;
  if (file) addPath(scan, file, { access: "read" }, evalContext);
  return { reason: "it runs the shell text of a file", runsUnknownText: true };
}

/** Analyzes the text of an alias, which runs when its name is used. */
export function describeAlias({ args, evalContext }: Invocation): OpaqueReason | undefined {
  for (const arg of args.filter(({ text }) => text.includes("="))) {
    const [value, ...others] = arg.values ?? [];
    if (!value || others.length > 0) return opaqueReasons.unseen;
    evalContext.runText(value.text.slice(value.text.indexOf("=") + 1));
  }
  return undefined;
}

/** Joins the arguments with blanks and analyzes them as shell text. Opaque unless all are known. */
export function runTexts(
  args: readonly Argument[],
  evalContext: EvalContext,
  dialect?: ShellDialect,
): OpaqueReason | undefined {
  const texts = args.map((arg) => (arg.splits ? undefined : knownText(arg)));
  if (!texts.every((text) => text !== undefined)) return opaqueReasons.unseen;
  evalContext.runText(texts.join(" "), dialect);
  return undefined;
}
