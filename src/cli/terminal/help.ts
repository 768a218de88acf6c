import { type Command, type Flag } from "../command-line/command.ts";
import { groupOf } from "../command-line/command-line.ts";
import type { Style } from "./style.ts";

/** Named once, for the help and the documents. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  limit: 3,
  /** The turn came to its end, but calls were refused because nobody could be asked. */
  refused: 4,
  cancelled: 130,
  /** The reader of stdout went away: 128 and the number of SIGPIPE. */
  closedPipe: 141,
} as const;

/** What the help is written on. */
export interface Page {
  readonly style: Style;
  /** Columns that a line may take. */
  readonly width: number;
}

/** Of a page that is no terminal, and of a terminal wider than people read. */
export const widestPage = 120;

/** The help on everything. */
export function helpOnAll(commands: readonly Command[], page: Page): string {
  const lines = commands.map((command): [string, string] => [synopsisOf(command), command.about]);
  const { style, width } = page;
  return [
    `${style.bold("Fairlead")}: a coding agent that lives behind your editor.\n`,
    style.bold("Usage:"),
    ...aligned(lines, page),
    "",
    ...wrapped(
      "fairlead COMMAND --help says what a command takes. fairlead --version prints the version.",
      width,
    ),
    ...wrapped(exitText, width),
    "",
  ].join("\n");
}

const exitText =
  "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 stopped at a limit, 4 done but calls were refused, 130 cancelled, 141 the reader of the output went away.";

/** The help on a command, or on all that begin with a word. Undefined where nothing is called so. */
export function helpOn(
  words: readonly string[],
  commands: readonly Command[],
  page: Page,
): string | undefined {
  const name = words.join(" ");
  const group = groupOf(name, commands);
  if (group.length > 0) return helpOnGroup(group, page);
  const command = commands.find(({ names }) => names.includes(name));
  return command && helpOnOne(command, page);
}

function helpOnGroup(group: readonly Command[], page: Page): string {
  return group.map((command) => helpOnOne(command, page)).join("\n");
}

function helpOnOne(command: Command, page: Page): string {
  const flags = command.flags.map((flag): [string, string] => [describeFlag(flag), describeValues(flag)]);
  return [
    page.style.bold(synopsisOf(command)),
    ...indented(command.about, page),
    ...(flags.length === 0 ? [] : ["", ...aligned(flags, page)]),
    ...(command.more === undefined ? [] : ["", ...command.more.flatMap((text) => indented(text, page))]),
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

/** Names and what they are in two columns, or one above the other where the terminal is narrow. */
function aligned(lines: readonly [string, string][], { style, width }: Page): string[] {
  const left = 4 + Math.max(...lines.map(([name]) => name.length));
  if (width - left < leastColumn)
    return lines.flatMap(([name, about]) => [`  ${style.cyan(name)}`, ...shifted(about, 6, width)]);
  return lines.flatMap(([name, about]) => {
    const [first = "", ...rest] = shifted(about, left, width);
    return [`  ${style.cyan(name)}${first.slice(2 + name.length)}`, ...rest];
  });
}

/** Columns below which text is no pleasure to read. */
const leastColumn = 30;

const indented = (text: string, { width }: Page): string[] => shifted(text, 2, width);

function shifted(text: string, left: number, width: number): string[] {
  return wrapped(text, width - left).map((line) => " ".repeat(left) + line);
}

/** Lines of whole words. What is wider by itself, such as an address, stands alone. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let open = "";
  for (const word of text.split(" ")) {
    const longer = open === "" ? word : `${open} ${word}`;
    if (open !== "" && longer.length > width) lines.push(open);
    open = open !== "" && longer.length > width ? word : longer;
  }
  return [...lines, open];
}
