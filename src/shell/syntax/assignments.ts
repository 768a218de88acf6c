import type { Assignment, Command, Word } from "unbash";
import type { ShellAssignment } from "../facts.ts";
import { type Argument, knownText, type ExpansionContext, toArguments } from "./word.ts";

/** Converts a word `name=value` to an assignment. */
export function toAssignment(word: Argument): ShellAssignment {
  const equals = word.text.indexOf("=");
  const name = word.text.slice(0, equals).replace(/[+[].*$/, "");
  return { name, text: word.text, value: knownText(word)?.slice(equals + 1) };
}

/** Converts an assignment before a command, or on its own. */
export function toShellAssignment(assignment: Assignment, names: ExpansionContext): ShellAssignment {
  const words = assignment.value.type === "Word" ? toArguments(assignment.value, names) : [];
  const [only, ...others] = words;
  const value = only && others.length === 0 ? knownText(only) : undefined;
  return { name: assignment.name, text: assignment.text, value };
}

/** Returns the words of a command, including assignments (`export name=value`). */
export function toArgv({ name, args }: Command, source: string, names: ExpansionContext): Argument[] {
  return [...(name ? [name] : []), ...args].flatMap((word) => toArgvWords(word, source, names));
}

function toArgvWords(word: Word | Assignment, source: string, names: ExpansionContext): Argument[] {
  if (word.type === "Word") return toArguments(word, names);
  const text = source.slice(word.pos, word.end);
  if (word.value.type !== "Word") return [{ text, raw: text, values: undefined, known: text, splits: false }];
  const name = text.slice(0, word.value.pos - word.pos);
  return toArguments(word.value, names).map((value) => ({
    text: name + value.text,
    raw: text,
    values: value.values?.map((one) => ({ ...one, text: name + one.text })),
    known: name + value.known,
    splits: false,
  }));
}
