import { isAbsolute, resolve } from "node:path";
import type { EvalContext } from "../part.ts";
import type { VariableAssignments } from "./variable-assignments.ts";
import { asGiven, knownText } from "./word.ts";
import type { Argument, Names } from "./word.ts";

/** The folders that the shell may be in; undefined where that cannot be known. */
export type WorkingDirs = readonly string[] | undefined;

/** Where the shell may be after a command that succeeded, and after one that failed. */
export interface Outcome {
  success: WorkingDirs;
  failure: WorkingDirs;
}

/** Folders that the shell may be in before it counts as unknown. */
const baseLimit = 8;

export function union(left: WorkingDirs, right: WorkingDirs): WorkingDirs {
  return left && right && limited([...left, ...right]);
}

function limited(bases: readonly string[]): WorkingDirs {
  const unique = [...new Set(bases)];
  return unique.length > baseLimit ? undefined : unique;
}

/** `!` makes a success of a failure. */
export function swapped(outcome: Outcome, isNegated: boolean): Outcome {
  return isNegated ? { success: outcome.failure, failure: outcome.success } : outcome;
}

/** Where `cd` goes; nothing for the home folder. */
export function cdTargets(args: readonly Argument[]): readonly Argument[] {
  return args.filter((arg) => !/^-[LPe@]*$/.test(arg.text) && arg.text !== "--").slice(0, 1);
}

/** Where the shell may be after a command that ran at this place. */
export function movedBy(written: readonly Argument[], place: Names, sites: VariableAssignments): Outcome {
  const { bases } = place;
  const argv = written.map(asGiven);
  if (argv[0]?.values?.length !== 1) return { success: undefined, failure: undefined };
  const names = argv.map((arg) => arg.text);
  const at = names.findIndex((name) => name !== "command" && name !== "builtin");
  const args = argv.slice(at + 1);
  switch (names[at]) {
    case "eval":
    case "source":
    case ".":
    case "trap":
      return movedByText(args, bases);
    case "pushd":
    case "popd":
      return { success: undefined, failure: bases };
    case "cd":
      return { success: cdBases(args, place, sites), failure: bases };
    default:
      return { success: bases, failure: bases };
  }
}

function movedByText(args: readonly Argument[], bases: WorkingDirs): Outcome {
  const isHarmless = args.every(
    (arg) => arg.values && !/\b(?:cd|pushd|popd|source)\b|(?:^|\s)\.\s/.test(arg.text),
  );
  const after = isHarmless && args.length > 0 ? bases : undefined;
  return { success: after, failure: after };
}

function cdBases(args: readonly Argument[], { home, bases }: Names, sites: VariableAssignments): WorkingDirs {
  const [target] = cdTargets(args);
  if (!target) return sites.count("HOME") === 0 ? [home] : undefined;
  if (!target.values || target.text === "-" || target.values.some((value) => value.glob)) return undefined;
  const texts = target.values.map((value) => value.text);
  if (sites.count("CDPATH") > 0 && !texts.every((text) => /^\.{0,2}(?:\/|$)/.test(text))) return undefined;
  if (!bases && !texts.every((text) => isAbsolute(text))) return undefined;
  return limited(texts.flatMap((text) => (bases ?? ["/"]).map((base) => resolve(base, text))));
}

/** As it is for a program that first goes to the folder. */
export function inFolder(place: EvalContext, folder: Argument): EvalContext {
  const text = knownText(folder);
  if (text === undefined) return { ...place, bases: undefined };
  if (isAbsolute(text)) return { ...place, bases: [text] };
  return { ...place, bases: place.bases?.map((base) => resolve(base, text)) };
}
