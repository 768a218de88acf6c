import type { Command, CommandExpansionPart, HereDoc, ParsedScript, Word, WordPart } from "unbash";

/** One text that a word may stand for; with `glob` it is a pattern of `*` and `?`. */
export interface Value {
  text: string;
  glob: boolean;
  /** What a pattern with brackets stands for where it fits nothing: itself. */
  written?: string;
  /** Absolute paths that the pattern stands for, where they are known already. */
  names?: readonly string[];
}

/** A word of a command line as the program will get it. */
export interface Argument {
  /** After quote removal; expansions that cannot be known stand as they are written. */
  readonly text: string;
  readonly raw: string;
  /** All texts that it can stand for, undefined where they cannot be known. */
  readonly values: readonly Value[] | undefined;
  /** The literal text before the first expansion that cannot be known. */
  readonly known: string;
  /** It may become several words, or none. */
  readonly splits: boolean;
  /** Another program adds it when it runs this one: it is no word of the command line. */
  readonly isAdded?: boolean;
}

/** What a word may refer to. */
export interface ExpansionContext {
  readonly home: string;
  /** The texts that a variable can hold, undefined where they cannot be known. */
  variable(name: string): readonly Value[] | undefined;
  /** Texts become several words elsewhere than at blanks. */
  readonly hasCustomSeparators: boolean;
  /** The folders that the shell can be in. */
  readonly workingDirs: readonly string[] | undefined;
}

/** A word stands for at most so many texts before it counts as unknown. */
const valueLimit = 64;

export function literalArgument(text: string): Argument {
  return { text, raw: text, values: [{ text, glob: false }], known: text, splits: false };
}

/** What a program adds to the arguments of another when it runs it. */
export const unknownArguments: Argument = {
  text: "(arguments from its input)",
  raw: "",
  values: undefined,
  known: "",
  splits: true,
  isAdded: true,
};

/** The one text that a word stands for; undefined where there may be several, or an unknown one. */
export function knownText({ values }: Argument): string | undefined {
  const [only, ...others] = values ?? [];
  return others.length === 0 && only?.glob === false ? only.text : undefined;
}

/** A word as the program gets it, by what it stands for and not by how it is written. */
export function resolveArgument(argument: Argument): Argument {
  const text = knownText(argument);
  return text === undefined || text === argument.text ? argument : { ...argument, text, known: text };
}

/** A word of which nothing is known, so that it may be an option. */
export function toUnknownArgument(argument: Argument): Argument {
  return { ...argument, values: undefined, known: "" };
}

/** The words as rules see them: without quotes, with one blank between. */
export function canonicalText(argv: readonly Argument[]): string {
  return argv
    .filter((arg) => arg.isAdded !== true)
    .map((arg) => arg.text)
    .join(" ");
}

/** The words that one written word becomes: several for `{a,b}`, else one. */
export function toArguments(word: Word, names: ExpansionContext): Argument[] {
  if (assignedTilde.test(word.text)) return [toAssignedArgument(word, names)];
  const alternatives = expandBraces(word.parts ?? [], word.text);
  if (!alternatives)
    return [{ text: word.value, raw: word.text, values: undefined, known: "", splits: true }];
  if (alternatives === "none") return [toArgument(word, names)];
  return alternatives.map((text) => toTildeArgument(text, names));
}

/** `a=~/b` and `a=b:~/c`: the shell puts the home folder there too. */
const assignedTilde = /^[A-Za-z_]\w*\+?=(?:~|[^'"\\$`]*:~)/;

function toAssignedArgument({ text, value, parts = [] }: Word, names: ExpansionContext): Argument {
  const [name = ""] = text.split("~");
  const expand =
    parts.length === 0 && name.endsWith("=")
      ? createTildeExpansion(value.slice(name.length), names)
      : undefined;
  const expanded = expand && !value.includes(":~") ? name + expand(value.slice(name.length)) : undefined;
  const values = expanded === undefined ? undefined : [{ text: expanded, glob: false }];
  return { text: value, raw: text, values, known: expanded ?? name, splits: false };
}

function toArgument(word: Word, names: ExpansionContext): Argument {
  const parts = word.parts ?? [];
  if (parts.length === 0) return { ...toTildeArgument(word.value, names, word.text), raw: word.text };
  const tilde = word.text.startsWith("~") ? createTildeExpansion(word.value, names) : undefined;
  if (word.text.startsWith("~") && !tilde) return unknownTilde(word.value, word.text);
  const reading = readParts(parts, names, false);
  const values = reading.values?.map((value) =>
    tilde ? { text: tilde(value.text), glob: value.glob } : value,
  );
  return { text: word.value, raw: word.text, values, known: reading.known, splits: reading.splits };
}

function toTildeArgument(text: string, names: ExpansionContext, raw = text): Argument {
  if (!raw.startsWith("~")) return literalArgument(text);
  const expand = createTildeExpansion(text, names);
  if (!expand) return unknownTilde(text, raw);
  return { text, raw, values: [{ text: expand(text), glob: false }], known: text, splits: false };
}

function unknownTilde(text: string, raw: string): Argument {
  return { text, raw, values: undefined, known: "~", splits: false };
}

/** How a leading tilde is replaced; undefined for another user's home and the like. */
function createTildeExpansion(text: string, names: ExpansionContext): ((text: string) => string) | undefined {
  if (!/^~(?:\/|$)/.test(text)) return undefined;
  const [home, ...others] = names.variable("HOME") ?? [];
  if (!home || others.length > 0) return undefined;
  return (value) => home.text + value.slice(1);
}

interface Reading {
  values: readonly Value[] | undefined;
  known: string;
  splits: boolean;
}

function readParts(parts: readonly WordPart[], names: ExpansionContext, quoted: boolean): Reading {
  let values: readonly Value[] | undefined = [{ text: "", glob: false }];
  let known = "";
  let splits = false;
  for (const part of parts) {
    const reading = readPart(part, names, quoted);
    splits ||= reading.splits;
    if (values) known += reading.values?.length === 1 ? (reading.values[0]?.text ?? "") : reading.known;
    values = values && reading.values && combineValues(values, reading.values);
  }
  return { values, known, splits };
}

function combineValues(left: readonly Value[], right: readonly Value[]): readonly Value[] | undefined {
  if (left.length * right.length > valueLimit) return undefined;
  return left.flatMap((a) => right.map((b) => joinValues(a, b)));
}

/** What is left of a value behind so many characters. */
export function sliceValue({ text, glob, written }: Value, from: number): Value {
  const value = { text: text.slice(from), glob };
  return written === undefined ? value : { ...value, written: written.slice(from) };
}

function joinValues(a: Value, b: Value): Value {
  const value = { text: a.text + b.text, glob: a.glob || b.glob };
  if (a.written === undefined && b.written === undefined) return value;
  return { ...value, written: (a.written ?? a.text) + (b.written ?? b.text) };
}

const unknownReading: Reading = { values: undefined, known: "", splits: false };
const unknownSplitReading: Reading = { values: undefined, known: "", splits: true };

function readPart(part: WordPart, names: ExpansionContext, quoted: boolean): Reading {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
      return fixedReading(part.value);
    case "DoubleQuoted":
    case "LocaleString":
      return readParts(part.parts, names, true);
    case "Glob":
      return patternReading(part.kind === "star" ? "*" : "?", part.text);
    case "ExtendedGlob":
      return patternReading("*");
    case "SimpleExpansion":
      return readVariable(part.text.slice(1), names, quoted);
    case "ParameterExpansion":
      if (part.prefix || part.index || part.operation)
        return quoted || part.prefix === "#" ? unknownReading : unknownSplitReading;
      return readVariable(part.parameter, names, quoted);
    case "CommandExpansion":
      return readCommand(part, names, quoted);
    case "ArithmeticExpansion":
      return unknownReading;
    case "ProcessSubstitution":
      return fixedReading("/dev/fd/63");
    case "BraceExpansion":
      return unknownSplitReading;
  }
}

function fixedReading(text: string): Reading {
  return { values: [{ text, glob: false }], known: text, splits: false };
}

function patternReading(text: string, written = text): Reading {
  const value = { text, glob: true, ...(written !== text && { written }) };
  return { values: [value], known: text, splits: true };
}

function readVariable(name: string, names: ExpansionContext, quoted: boolean): Reading {
  if (/^[?#$!]$/.test(name)) return unknownReading;
  if (name === "@") return unknownSplitReading;
  const values = names.variable(name);
  if (!values) return quoted ? unknownReading : unknownSplitReading;
  if (quoted) return { values, known: "", splits: false };
  return names.hasCustomSeparators || values.some((value) => /[\s*?[\\]/.test(value.text) && !value.glob)
    ? unknownSplitReading
    : { values, known: "", splits: false };
}

/** Knows what `$(pwd)` and `$(cat <<'EOF' … EOF)` print. */
function readCommand(part: CommandExpansionPart, names: ExpansionContext, quoted: boolean): Reading {
  const printed = part.script && printedText(part.script, names);
  if (printed === undefined) return quoted ? unknownReading : unknownSplitReading;
  const isOneWord = quoted || !(names.hasCustomSeparators || /[\s*?[\\]/.test(printed));
  return isOneWord ? fixedReading(printed) : unknownSplitReading;
}

function printedText(script: ParsedScript, names: ExpansionContext): string | undefined {
  const command = onlyCommand(script);
  const isPwd = command?.name?.text === "pwd" && command.suffix.length === 0;
  return isPwd && names.workingDirs?.length === 1 ? names.workingDirs[0] : quotedText(script);
}

/** The text of `$(cat <<'EOF' … EOF)`, which only quotes it; undefined for every other substitution. */
export function quotedText(script: ParsedScript): string | undefined {
  const command = onlyCommand(script);
  const [only, ...more] = command?.suffix ?? [];
  if (command?.name?.text !== "cat" || more.length > 0 || only?.type !== "HereDoc") return undefined;
  return readHereDoc(only)?.replace(/\n+$/, "");
}

function onlyCommand(script: ParsedScript): Command | undefined {
  const [statement, ...others] = script.commands;
  const command = statement?.command;
  return others.length === 0 && command?.type === "Command" && command.prefix.length === 0
    ? command
    : undefined;
}

function readHereDoc(hereDoc: HereDoc): string | undefined {
  if (!hereDoc.closing || hereDoc.operator !== "<<") return undefined;
  const parts = hereDoc.body.parts ?? [];
  const isLiteral = hereDoc.delimiter?.quoted === true || parts.every((part) => part.type === "Literal");
  return isLiteral && !hereDoc.body.text.includes("\\") ? hereDoc.body.text : undefined;
}

/** `"none"` without braces, undefined where they cannot be expanded here (nested, quoted, long or with expansions). */
function expandBraces(parts: readonly WordPart[], text: string): string[] | "none" | undefined {
  if (!parts.some((part) => part.type === "BraceExpansion")) return "none";
  let words = [""];
  for (const part of parts) {
    const pieces =
      part.type === "BraceExpansion"
        ? expandBrace(part.text)
        : part.type === "Literal"
          ? [part.value]
          : undefined;
    if (!pieces || words.length * pieces.length > valueLimit) return undefined;
    words = words.flatMap((word) => pieces.map((piece) => word + piece));
  }
  return text.startsWith("~") ? undefined : words.filter((word) => word !== "");
}

function expandBrace(text: string): string[] | undefined {
  const inner = text.slice(1, -1);
  if (inner.includes(",") && /^[\w./@:+,%=-]*$/.test(inner)) return inner.split(",");
  const range = /^(\d{1,4})\.\.(\d{1,4})$/.exec(inner);
  if (!range) return undefined;
  const [from, to] = [Number(range[1]), Number(range[2])];
  if (Math.abs(to - from) >= valueLimit || /^0\d/.test(range[1] ?? "") || /^0\d/.test(range[2] ?? ""))
    return undefined;
  const step = Math.sign(to - from);
  return Array.from({ length: Math.abs(to - from) + 1 }, (_, index) => String(from + step * index));
}
