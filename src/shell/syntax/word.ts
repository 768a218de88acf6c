import type { Command, CommandExpansionPart, HereDoc, ParsedScript, Word, WordPart } from "unbash";

/** One possible text of a word; with `glob` it is a pattern of `*` and `?`. */
export interface Value {
  text: string;
  glob: boolean;
  /** The source of a pattern, which the shell passes on if nothing matches. */
  written?: string;
  /** Absolute paths that match the pattern, if known. */
  names?: readonly string[];
}

/** A word of a command line as the program receives it. */
export interface Argument {
  /** Text without quotes; unknown expansions are left as written. */
  readonly text: string;
  readonly raw: string;
  /** All possible texts; undefined if unknown. */
  readonly values: readonly Value[] | undefined;
  /** The literal text before the first unknown expansion. */
  readonly known: string;
  /** May become several words, or none. */
  readonly splits: boolean;
  /** Added by a wrapper when it runs the command; not a word of the command line. */
  readonly isAdded?: boolean;
}

/** The shell state that expansions refer to. */
export interface ExpansionContext {
  readonly home: string;
  /** Converts a path as a command names it, as in `ShellContext`. */
  readonly readPath?: ((text: string) => string) | undefined;
  /** Returns the possible texts of a variable; undefined if unknown. */
  variable(name: string): readonly Value[] | undefined;
  /** `IFS` may be set: texts are not only split at blanks. */
  readonly hasCustomSeparators: boolean;
  /** The folders in which the shell may be; undefined if unknown. */
  readonly workingDirs: readonly string[] | undefined;
}

/** Maximum number of texts of a word; above, the word is unknown. */
const valueLimit = 64;

export function literalArgument(text: string): Argument {
  return { text, raw: text, values: [{ text, glob: false }], known: text, splits: false };
}

/** The arguments that a wrapper adds when it runs a command. */
export const unknownArguments: Argument = {
  text: "(arguments from its input)",
  raw: "",
  values: undefined,
  known: "",
  splits: true,
  isAdded: true,
};

/** Returns the text of a word; undefined if it is unknown or there are several. */
export function knownText({ values }: Argument): string | undefined {
  const [only, ...others] = values ?? [];
  return others.length === 0 && only?.glob === false ? only.text : undefined;
}

/** Replaces the source text of a word by its known text. */
export function resolveArgument(argument: Argument): Argument {
  const text = knownText(argument);
  return text === undefined || text === argument.text ? argument : { ...argument, text, known: text };
}

/** Forgets the texts of a word, so that it may be an option. */
export function toUnknownArgument(argument: Argument): Argument {
  return { ...argument, values: undefined, known: "" };
}

/** Returns the words as rules match them: without quotes, separated by one blank. */
export function canonicalText(argv: readonly Argument[]): string {
  return argv
    .filter((arg) => arg.isAdded !== true)
    .map((arg) => arg.text)
    .join(" ");
}

/** Expands a word of the source: to several for `{a,b}`, else to one. */
export function toArguments(word: Word, names: ExpansionContext): Argument[] {
  if (assignedTilde.test(word.text)) return [toAssignedArgument(word, names)];
  const alternatives = expandBraces(word.parts ?? [], word.text);
  if (!alternatives)
    return [{ text: word.value, raw: word.text, values: undefined, known: "", splits: true }];
  if (alternatives === "none") return [toArgument(word, names)];
  return alternatives.map((text) => toTildeArgument(text, names));
}

/** The shell expands the tilde in `a=~/b` and `a=b:~/c` too. */
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

/** Returns the expansion of a leading tilde; undefined if the folder is unknown, as in `~user`. */
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

/** Returns the value without its first `from` characters. */
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

/** Expands `$(pwd)` and `$(cat <<'EOF' … EOF)`, whose output is known. */
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

/** Returns the text of `$(cat <<'EOF' … EOF)`; undefined for every other substitution. */
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

/** Returns `"none"` without braces; undefined if they are nested, quoted, too long or contain expansions. */
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
