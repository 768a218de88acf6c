import { parseArgs } from "node:util";
import { nearest } from "../../base/text/nearest.ts";
import { Call, type Command, type Flag } from "./command.ts";
import { UsageError } from "./usage.ts";

/** Result of {@link findCommand}. */
export type ParsedCommandLine =
  | { kind: "call"; command: Command; args: readonly string[] }
  /** Help on the named command, or on all commands. */
  | { kind: "help"; words: readonly string[] }
  | { kind: "version" };

/** Finds the command that the words begin with. Throws {@link UsageError} when there is none. */
export function findCommand(words: readonly string[], commands: readonly Command[]): ParsedCommandLine {
  const [first, ...rest] = words;
  if (first === undefined || first === "--help" || first === "-h") return { kind: "help", words: rest };
  if (first === "help") return { kind: "help", words: rest };
  if (first === "--version" || first === "-v") return { kind: "version" };
  const found = findLongestMatch(words, commands);
  if (found === undefined) throw new UsageError(describeUnknownCommand(first, commands, rest));
  const { command, length } = found;
  const args = words.slice(length);
  const flags = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  if (flags.includes("--help") || flags.includes("-h"))
    return { kind: "help", words: words.slice(0, length) };
  return { kind: "call", command, args };
}

/** Parses and validates arguments. Throws {@link UsageError} with a suggestion. */
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
    const flag = findFlag(token.name, token.rawName, command);
    const value = checkValue(flag, token.value, token.inlineValue === true, command);
    const before = values.get(flag.name);
    if (before !== undefined && flag.repeats !== true && before !== value)
      throw new UsageError(`--${flag.name} is given twice: ${String(before)} and ${String(value)}`);
    const list = Array.isArray(before) ? before : [];
    values.set(flag.name, flag.repeats === true ? [...list, String(value)] : value);
  }
  checkOperands(operands, command, commands);
  return new Call(command, values, operands);
}

/** Returns the commands that begin with a word, such as all of `sessions`. */
export function getCommandGroup(word: string, commands: readonly Command[]): readonly Command[] {
  return commands.filter(({ names }) => names.some((name) => name.startsWith(`${word} `)));
}

function findLongestMatch(
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

/** Error text for a word that begins no command, with a suggestion. */
export function describeUnknownCommand(
  word: string,
  commands: readonly Command[],
  rest: readonly string[] = [],
): string {
  if (getCommandGroup(word, commands).length > 0)
    return `${word} takes ${getSubcommands(word, commands).join(", ")}`;
  const instead = otherNames.get(word);
  if (instead !== undefined) return `unknown command "${word}". Use ${instead}`;
  const words = [...new Set(commands.flatMap(({ names }) => names.map((name) => name.split(" ")[0] ?? "")))];
  const near = nearest(word, words);
  // Several words are probably a prompt, not a misspelled command.
  const text = [word, ...rest].join(" ");
  const isPrompt = near === undefined && /\S\s+\S/.test(text) && !rest.some((one) => one.startsWith("-"));
  return `unknown command "${word}"${didYouMean(isPrompt ? `fairlead run ${JSON.stringify(text)}` : near)}`;
}

/** Replacements for commands of similar programs. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ["auth", "fairlead setup to store a key, fairlead logout to remove it"],
  ["login", "fairlead setup"],
  ["chat", 'fairlead run "…", then fairlead run --continue "…"; or an editor, which fairlead acp serves'],
  ["exec", 'fairlead run "…"'],
  ["resume", 'fairlead run --continue "…", or --session ID'],
  ["init", "fairlead setup; for an AGENTS.md: fairlead run /init"],
  ["serve", "fairlead acp, which editors start"],
  ["upgrade", "npm install --global fairlead@latest"],
  ["update", "npm install --global fairlead@latest"],
]);

function getSubcommands(word: string, commands: readonly Command[]): string[] {
  const names = getCommandGroup(word, commands).flatMap(({ names }) => names);
  return names.flatMap((name) => (name.startsWith(`${word} `) ? [name.slice(word.length + 1)] : []));
}

function toOption(flag: Flag): [string, { type: "string" | "boolean"; short?: string }] {
  const { name, value, short } = flag;
  return [name, { type: value === undefined ? "boolean" : "string", ...(short !== undefined && { short }) }];
}

function findFlag(name: string, written: string, command: Command): Flag {
  const flag = command.flags.find((candidate) => candidate.name === name);
  if (flag !== undefined) return flag;
  const near = nearest(
    name,
    command.flags.map((candidate) => candidate.name),
  );
  const isText = command.operands !== undefined && command.operands.most > 0;
  const hint =
    near !== undefined
      ? didYouMean(`--${near}`)
      : isText
        ? `. Put -- before text that begins with a dash`
        : undefined;
  throw new UsageError(`${command.names[0]} has no flag ${written}${hint ?? ""}`, command.names[0]);
}

function checkValue(
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
  // A value that looks like a flag means that the value is missing.
  if (value === undefined || (!isInline && /^--?[a-z]/.test(value)))
    throw wrong(`--${flag.name} needs a value: --${flag.name} ${flag.value}`);
  if (flag.choices !== undefined && !flag.choices.includes(value))
    throw wrong(
      `--${flag.name} takes ${flag.choices.join(", ")}, not "${value}"${didYouMean(nearest(value, flag.choices))}`,
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
  const verbs = getSubcommands(word, commands);
  if (most === 0 && verbs.length > 0 && command.names.includes(word)) {
    const near = nearest(first, verbs);
    const hint = didYouMean(near && `${word} ${near}`);
    throw new UsageError(`${word} takes ${verbs.join(", ")}, not "${first}"${hint}`, word);
  }
  const unexpected = operands.slice(most).join(" ");
  throw new UsageError(
    `${name} takes ${most === 0 ? "no arguments" : text}; unexpected: ${unexpected}`,
    name,
  );
}

function didYouMean(name: string | undefined): string {
  return name === undefined ? "" : `. Did you mean ${name}?`;
}
