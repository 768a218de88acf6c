import { type Command, type Flag } from "./command.ts";
import { groupOf } from "./command-line.ts";
import type { Style } from "./style.ts";

/** Named once, for the help and the documents. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  limit: 3,
  cancelled: 130,
  /** The reader of stdout went away: 128 and the number of SIGPIPE. */
  closedPipe: 141,
} as const;

const exitText = `Exit codes: 0 done, 1 failed, 2 wrong usage, 3 stopped at a limit, 130 cancelled, 141 the reader of the output went away.
`;

/** The help on everything. */
export function helpOnAll(commands: readonly Command[], style: Style): string {
  const lines = commands.map((command): [string, string] => [synopsisOf(command), command.about]);
  return [
    `${style.bold("Fairlead")}: a coding agent that lives behind your editor.\n`,
    style.bold("Usage:"),
    ...aligned(lines, style),
    "",
    "fairlead COMMAND --help says what a command takes. fairlead --version prints the version.",
    exitText,
  ].join("\n");
}

/** The help on a command, or on all that begin with a word. Undefined where nothing is called so. */
export function helpOn(
  words: readonly string[],
  commands: readonly Command[],
  style: Style,
): string | undefined {
  const name = words.join(" ");
  const group = groupOf(name, commands);
  if (group.length > 0) return helpOnGroup(group, style);
  const command = commands.find(({ names }) => names.includes(name));
  return command && helpOnOne(command, style);
}

function helpOnGroup(group: readonly Command[], style: Style): string {
  return group.map((command) => helpOnOne(command, style)).join("\n");
}

function helpOnOne(command: Command, style: Style): string {
  const flags = command.flags.map((flag): [string, string] => [describeFlag(flag), describeValues(flag)]);
  return [
    style.bold(synopsisOf(command)),
    `  ${command.about}`,
    ...(flags.length === 0 ? [] : ["", ...aligned(flags, style)]),
    ...(command.more === undefined ? [] : ["", ...command.more.map((line) => `  ${line}`)]),
    "",
  ].join("\n");
}

function synopsisOf({ names, operands }: Command): string {
  return ["fairlead", names[0], operands?.text ?? ""].join(" ").trim();
}

function describeFlag({ name, short, value }: Flag): string {
  const before = short === undefined ? "" : `-${short}, `;
  return `${before}--${name}${value === undefined ? "" : ` ${value}`}`;
}

function describeValues({ about, repeats }: Flag): string {
  return repeats === true ? `${about}; more than once` : about;
}

function aligned(lines: readonly [string, string][], style: Style): string[] {
  const width = Math.max(...lines.map(([name]) => name.length));
  return lines.map(([name, about]) => `  ${style.cyan(name)}${" ".repeat(width - name.length)}  ${about}`);
}
