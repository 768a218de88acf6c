import { parseArgs } from "node:util";
import { nearest } from "../../base/text/nearest.ts";
import { Call, type Command, type Flag } from "./command.ts";
import { UsageError } from "./usage.ts";

/** What a line of arguments asks for. */
export type Asked =
  | { kind: "call"; command: Command; args: readonly string[] }
  /** Help on everything, or on what the words name. */
  | { kind: "help"; words: readonly string[] }
  | { kind: "version" };

/** Finds the command that the words begin with. Throws {@link UsageError} where there is none. */
export function findCommand(words: readonly string[], commands: readonly Command[]): Asked {
  const [first, ...rest] = words;
  if (first === undefined || first === "--help" || first === "-h") return { kind: "help", words: rest };
  if (first === "help") return { kind: "help", words: rest };
  if (first === "--version" || first === "-v") return { kind: "version" };
  const found = longestMatch(words, commands);
  if (found === undefined) throw new UsageError(unknownCommand(first, commands, rest));
  const { command, length } = found;
  const args = words.slice(length);
  const flags = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  if (flags.includes("--help") || flags.includes("-h"))
    return { kind: "help", words: words.slice(0, length) };
  return { kind: "call", command, args };
}

/** Checks arguments against what the command takes. Throws {@link UsageError} that says what is meant. */
export function parseCall(command: Command, args: readonly string[], commands: readonly Command[]): Call {
  const { tokens } = parseArgs({
    args: [...args],
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: Object.fromEntries(command.flags.map(toOption)),
  });
  const values = new Map<string, string | true | readonly string[]>();
  const operands: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") operands.push(token.value);
    if (token.kind !== "option") continue;
    const flag = flagNamed(token.name, token.rawName, command);
    const value = checkedValue(flag, token.value, token.inlineValue === true, command);
    const before = values.get(flag.name);
    if (before !== undefined && flag.repeats !== true && before !== value)
      throw new UsageError(`--${flag.name} is given twice: ${String(before)} and ${String(value)}`);
    const list = Array.isArray(before) ? before : [];
    values.set(flag.name, flag.repeats === true ? [...list, String(value)] : value);
  }
  checkOperands(operands, command, commands);
  return new Call(command, values, operands);
}

/** The commands that begin with a word, such as all of `sessions`. */
export function groupOf(word: string, commands: readonly Command[]): readonly Command[] {
  return commands.filter(({ names }) => names.some((name) => name.startsWith(`${word} `)));
}

function longestMatch(
  words: readonly string[],
  commands: readonly Command[],
): { command: Command; length: number } | undefined {
  for (const length of [2, 1]) {
    const name = words.slice(0, length).join(" ");
    const command = commands.find(({ names }) => names.includes(name));
    if (command !== undefined) return { command, length };
  }
  return undefined;
}

/** What is said where no command begins with the word. */
export function unknownCommand(
  word: string,
  commands: readonly Command[],
  rest: readonly string[] = [],
): string {
  if (groupOf(word, commands).length > 0) return `${word} takes ${verbsOf(word, commands).join(", ")}`;
  const words = [...new Set(commands.flatMap(({ names }) => names.map((name) => name.split(" ")[0] ?? "")))];
  const near = nearest(word, words);
  // Several words are a prompt rather than a slip.
  const text = [word, ...rest].join(" ");
  const isPrompt = near === undefined && /\S\s+\S/.test(text) && !rest.some((one) => one.startsWith("-"));
  return `there is no command "${word}"${meant(isPrompt ? `fairlead run ${JSON.stringify(text)}` : near)}`;
}

function verbsOf(word: string, commands: readonly Command[]): string[] {
  const names = groupOf(word, commands).flatMap(({ names }) => names);
  return names.flatMap((name) => (name.startsWith(`${word} `) ? [name.slice(word.length + 1)] : []));
}

function toOption(flag: Flag): [string, { type: "string" | "boolean"; short?: string }] {
  const { name, value, short } = flag;
  return [name, { type: value === undefined ? "boolean" : "string", ...(short !== undefined && { short }) }];
}

function flagNamed(name: string, written: string, command: Command): Flag {
  const flag = command.flags.find((candidate) => candidate.name === name);
  if (flag !== undefined) return flag;
  const near = nearest(
    name,
    command.flags.map((candidate) => candidate.name),
  );
  const isText = command.operands !== undefined && command.operands.most > 0;
  const hint =
    near !== undefined
      ? meant(`--${near}`)
      : isText
        ? `. Put -- before text that begins with a dash`
        : undefined;
  throw new UsageError(`${command.names[0]} has no flag ${written}${hint ?? ""}`, command.names[0]);
}

function checkedValue(
  flag: Flag,
  value: string | undefined,
  isInline: boolean,
  command: Command,
): string | true {
  const wrong = (message: string) => new UsageError(message, command.names[0]);
  if (flag.value === undefined) {
    if (value !== undefined) throw wrong(`--${flag.name} takes no value`);
    return true;
  }
  // What looks like the next flag is one: the value was forgotten.
  if (value === undefined || (!isInline && /^--?[a-z]/.test(value)))
    throw wrong(`--${flag.name} needs a value: --${flag.name} ${flag.value}`);
  if (flag.choices !== undefined && !flag.choices.includes(value))
    throw wrong(
      `--${flag.name} takes ${flag.choices.join(", ")}, not "${value}"${meant(nearest(value, flag.choices))}`,
    );
  if (flag.number !== undefined && !isNumber(value, flag.number))
    throw wrong(
      `--${flag.name} takes a ${flag.number === "count" ? "whole number of at least 1" : "number above 0"}, not "${value}"`,
    );
  return value;
}

function isNumber(text: string, kind: "count" | "amount"): boolean {
  const number = text.trim() === "" ? Number.NaN : Number(text);
  return Number.isFinite(number) && number > 0 && (kind === "amount" || Number.isInteger(number));
}

function checkOperands(operands: readonly string[], command: Command, commands: readonly Command[]): void {
  const { least, most, text } = command.operands ?? { least: 0, most: 0, text: "" };
  const [name] = command.names;
  if (operands.length < least) throw new UsageError(`${name} needs ${text}`, name);
  if (operands.length <= most) return;
  const first = operands[0] ?? "";
  const word = name.split(" ")[0] ?? name;
  const verbs = verbsOf(word, commands);
  if (most === 0 && verbs.length > 0 && command.names.includes(word)) {
    const near = nearest(first, verbs);
    throw new UsageError(
      `${word} takes ${verbs.join(", ")}, not "${first}"${meant(near && `${word} ${near}`)}`,
      word,
    );
  }
  const much = operands.slice(most).join(" ");
  throw new UsageError(`${name} takes ${most === 0 ? "nothing" : text}; too much: ${much}`, name);
}

function meant(name: string | undefined): string {
  return name === undefined ? "" : `. Did you mean ${name}?`;
}
