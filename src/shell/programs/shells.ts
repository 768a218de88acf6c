import { doubts } from "../opaque-reason.ts";
import type { OpaqueReason } from "../opaque-reason.ts";
import { dangersIn, hasOption, readOptions } from "./options.ts";
import type { Invocation, EvalContext } from "../part.ts";
import { addPath, addVisiblePaths } from "../syntax/paths.ts";
import { isInput } from "./program.ts";
import { knownText, literalArgument } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";

const shells = new Set(
  "sh bash dash zsh ksh mksh ash fish csh tcsh rbash pwsh powershell nu elvish xonsh".split(" "),
);

export function isShell(name: string): boolean {
  return shells.has(name.replace(/\.exe$/i, ""));
}

export function describeShell({ scan, args, place }: Invocation): OpaqueReason | undefined {
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
function runShellText(args: readonly Argument[], place: EvalContext): OpaqueReason | undefined {
  let next = 0;
  while (/^[-+]/.test(args[next]?.text ?? ""))
    next += /^[-+][A-Za-z]*[oO]$/.test(args[next]?.text ?? "") ? 2 : 1;
  const text = args[next];
  return text ? runTexts([text], place) : doubts.input;
}

/** What it runs is judged by its words too where the text is not known. */
export function describeEval({ scan, args, command, place }: Invocation): OpaqueReason | undefined {
  const doubt = runTexts(args, place);
  if (doubt && args.length > 0)
    scan.addWrapped({ argv: args, raw: command.raw, assignments: command.assignments }, place);
  return doubt;
}

export function describeTrap({ args, place }: Invocation): OpaqueReason | undefined {
  const [action] = args.filter((arg) => arg.text !== "--");
  return !action || /^-[lp]?$/.test(action.text) ? undefined : runTexts([action], place);
}

export function describeSource({ scan, args, place }: Invocation): OpaqueReason {
  const [file] = args;
  if (file) addPath(scan, file, { access: "read" }, place);
  return { reason: "it runs the shell text of a file", unseen: true };
}

/** A shell that knows aliases runs their text where the name stands next. */
export function describeAlias({ args, place }: Invocation): OpaqueReason | undefined {
  for (const arg of args.filter(({ text }) => text.includes("="))) {
    const [value, ...others] = arg.values ?? [];
    if (!value || others.length > 0) return doubts.unseen;
    place.runText(value.text.slice(value.text.indexOf("=") + 1));
  }
  return undefined;
}

/** Joined by blanks and read as shell text, where all of it is known. */
export function runTexts(args: readonly Argument[], place: EvalContext): OpaqueReason | undefined {
  const texts = args.map((arg) => (arg.splits ? undefined : knownText(arg)));
  if (!texts.every((text) => text !== undefined)) return doubts.unseen;
  place.runText(texts.join(" "));
  return undefined;
}
