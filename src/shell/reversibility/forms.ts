import { matchesWildcards } from "../../base/text/wildcards.ts";
import { hasFlag, parseOptions } from "../programs/options.ts";
import type { ParsedOptions } from "../programs/options.ts";
import { knownText } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";

/** Whether a command can be undone: `unknown` if its words do not show it, else the reason why it cannot. */
export type Reversibility = "undoable" | "unknown" | { readonly irreversible: string };

/**
 * The commands of one program that can and cannot be undone. A form describes commands by their words:
 * - Words are compared with the operands from the first one on; more operands may follow.
 * - `a|b` is one of several words, `*` any characters, `**` any number of words, `$` the end of the operands.
 * - `-d|--delete` is an option that the command has, `!-n|--dry-run` one that it does not have.
 *
 * Forms are separated by `, `; the first one that matches decides.
 */
export interface ReversibilityRecord {
  /** Options that take the next word, which is then no operand. */
  readonly valueFlags?: string;
  /** Options have long names after a single dash (`terraform -chdir=a`). */
  readonly hasSingleDashNames?: boolean;
  /** Options with which the program only shows what it would do. */
  readonly dryRunFlags?: string;
  /** Forms that can be undone although one of `irreversible` matches. */
  readonly harmless?: string;
  /** The forms that cannot be undone, by the reason. */
  readonly irreversible?: Readonly<Record<string, string>>;
  /** The forms that can be undone. */
  readonly undoable?: string;
  /** Applies to all other forms; `unknown` by default. */
  readonly otherwise?: "undoable" | { readonly irreversible: string };
}

/** Compares a command with the forms of its program. */
export function matchRecord(args: readonly Argument[], record: ReversibilityRecord): Reversibility {
  const options = parseOptions(args, {
    ...(record.valueFlags !== undefined && { valueFlags: record.valueFlags }),
    ...(record.hasSingleDashNames && { hasSingleDashNames: true }),
  });
  if (isDryRun(options, record.dryRunFlags) || matchesForms(options, record.harmless)) return "undoable";
  for (const [reason, forms] of Object.entries(record.irreversible ?? {}))
    if (matchesForms(options, forms)) return { irreversible: reason };
  if (matchesForms(options, record.undoable)) return "undoable";
  return record.otherwise ?? "unknown";
}

/** Whether an option that shows what would happen is given, and not as `--dry-run=none`. */
function isDryRun(options: ParsedOptions, list: string | undefined): boolean {
  const flags = options.flags.filter(
    ({ value }) => value === undefined || !/^(?:none|false|no|0)$/i.test(knownText(value) ?? "false"),
  );
  return hasFlag({ ...options, flags }, list);
}

function matchesForms(options: ParsedOptions, forms: string | undefined): boolean {
  return forms !== undefined && forms.split(", ").some((form) => matchesForm(options, form));
}

function matchesForm(options: ParsedOptions, form: string): boolean {
  const tokens = form.split(" ");
  const words = tokens.filter((token) => !/^!?-/.test(token));
  return (
    matchesWords(words, options.operands) &&
    tokens.every((token) => {
      if (token.startsWith("!-")) return !hasFlag(options, token.slice(1).replaceAll("|", " "));
      return !token.startsWith("-") || hasFlag(options, token.replaceAll("|", " "));
    })
  );
}

function matchesWords(words: readonly string[], operands: readonly Argument[]): boolean {
  const [word, ...rest] = words;
  if (word === undefined) return true;
  if (word === "$") return operands.length === 0;
  if (word === "**")
    return operands.some((_, at) => matchesWords(rest, operands.slice(at))) || matchesWords(rest, []);
  const [operand, ...others] = operands;
  return operand !== undefined && matchesWord(word, operand) && matchesWords(rest, others);
}

/** A word with several possible texts matches if one of them does. */
function matchesWord(word: string, { values = [] }: Argument): boolean {
  const patterns = word.split("|");
  return values.some(
    ({ text, glob }) => !glob && patterns.some((pattern) => matchesWildcards(pattern, text)),
  );
}
