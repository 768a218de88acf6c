import { isAbsolute, resolve } from "node:path/posix";
import type { EvalContext } from "../facts.ts";
import type { VariableAssignments } from "./variable-assignments.ts";
import { resolveArgument, knownText } from "./word.ts";
import type { Argument, ExpansionContext } from "./word.ts";

/** The folders in which the shell may be; undefined if unknown. */
export type WorkingDirs = readonly string[] | undefined;

/** The folders after a command succeeds and after it fails. */
export interface Outcome {
  success: WorkingDirs;
  failure: WorkingDirs;
}

/** Maximum number of possible folders; above, the folder is unknown. */
const dirLimit = 8;

export function unionDirs(left: WorkingDirs, right: WorkingDirs): WorkingDirs {
  return left && right && limitDirs([...left, ...right]);
}

function limitDirs(workingDirs: readonly string[]): WorkingDirs {
  const unique = [...new Set(workingDirs)];
  return unique.length > dirLimit ? undefined : unique;
}

/** Exchanges success and failure, as `!` does. */
export function negateOutcome(outcome: Outcome, isNegated: boolean): Outcome {
  return isNegated ? { success: outcome.failure, failure: outcome.success } : outcome;
}

/** Returns the operand of `cd`; empty for the home folder. */
export function findCdTarget(args: readonly Argument[]): readonly Argument[] {
  return args.filter((arg) => !/^-[LPe@]*$/.test(arg.text) && arg.text !== "--").slice(0, 1);
}

/** Returns the folders after a command. */
export function findDirsAfter(
  written: readonly Argument[],
  evalContext: ExpansionContext,
  assignments: VariableAssignments,
): Outcome {
  const { workingDirs } = evalContext;
  const argv = written.map(resolveArgument);
  if (argv[0]?.values?.length !== 1) return { success: undefined, failure: undefined };
  const names = argv.map((arg) => arg.text);
  const at = names.findIndex((name) => name !== "command" && name !== "builtin");
  const args = argv.slice(at + 1);
  switch (names[at]) {
    case "eval":
    case "source":
    case ".":
    case "trap":
      return findDirsAfterText(args, workingDirs);
    case "pushd":
    case "popd":
      return { success: undefined, failure: workingDirs };
    case "cd":
      return { success: findCdDirs(args, evalContext, assignments), failure: workingDirs };
    default:
      return { success: workingDirs, failure: workingDirs };
  }
}

function findDirsAfterText(args: readonly Argument[], workingDirs: WorkingDirs): Outcome {
  const isHarmless = args.every(
    (arg) => arg.values && !/\b(?:cd|pushd|popd|source)\b|(?:^|\s)\.\s/.test(arg.text),
  );
  const after = isHarmless && args.length > 0 ? workingDirs : undefined;
  return { success: after, failure: after };
}

function findCdDirs(
  args: readonly Argument[],
  { home, workingDirs, readPath = (text) => text }: ExpansionContext,
  assignments: VariableAssignments,
): WorkingDirs {
  const [target] = findCdTarget(args);
  if (!target) return assignments.count("HOME") === 0 ? [home] : undefined;
  if (!target.values || target.text === "-" || target.values.some((value) => value.glob)) return undefined;
  const texts = target.values.map((value) => readPath(value.text));
  if (assignments.count("CDPATH") > 0 && !texts.every((text) => /^\.{0,2}(?:\/|$)/.test(text)))
    return undefined;
  if (!workingDirs && !texts.every((text) => isAbsolute(text))) return undefined;
  return limitDirs(texts.flatMap((text) => (workingDirs ?? ["/"]).map((base) => resolve(base, text))));
}

/** Returns the context of a program that changes to the folder first (`git -C`). */
export function enterFolder(evalContext: EvalContext, folder: Argument): EvalContext {
  const named = knownText(folder);
  if (named === undefined) return { ...evalContext, workingDirs: undefined };
  const text = evalContext.readPath?.(named) ?? named;
  if (isAbsolute(text)) return { ...evalContext, workingDirs: [text] };
  return { ...evalContext, workingDirs: evalContext.workingDirs?.map((base) => resolve(base, text)) };
}
