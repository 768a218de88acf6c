import { type Command, type Flag } from "../command-line/command.ts";
import { getCommandGroup } from "../command-line/command-line.ts";
import type { Style } from "./style.ts";
import { wrapWords } from "./wrap-words.ts";

/** Exit codes of all commands; also listed in the help and the documents. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  limit: 3,
  /** The turn ended normally, but calls were refused because no user could be asked. */
  refused: 4,
  /** The model or its provider failed. */
  model: 5,
  /** The answer does not match the requested schema. */
  schema: 6,
  cancelled: 130,
  /** The reader of stdout closed it: 128 plus the number of SIGPIPE. */
  closedPipe: 141,
} as const;

/** Format of a help page. */
export interface Page {
  readonly style: Style;
  /** Maximum columns of a line. */
  readonly width: number;
}

/** Width of a page in a wide terminal, or outside terminals. */
export const maxPageWidth = 120;

/** Formats the list of all commands. */
export function formatOverview(commands: readonly Command[], page: Page): string {
  const lines = commands.map((command): [string, string] => [getSynopsis(command), command.about]);
  const { style, width } = page;
  return [
    `${style.bold("Fairlead")}: a coding agent for your editor.\n`,
    style.bold("Usage:"),
    ...alignColumns(lines, page),
    "",
    ...wrapWords(
      "fairlead COMMAND --help shows the help of a command. fairlead --version prints the version.",
      width,
    ),
    ...wrapWords(exitText, width),
    "",
  ].join("\n");
}

const exitText =
  "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 stopped at a limit, 4 done but calls were refused, 5 the model or its provider failed, 6 the answer does not match the schema (3 to 6: run), 130 cancelled, 141 the reader closed the output.";

/** Formats the help of a command, or of all commands that begin with a word. Returns undefined for an unknown name. */
export function formatCommandHelp(
  words: readonly string[],
  commands: readonly Command[],
  page: Page,
): string | undefined {
  const name = words.join(" ");
  const group = getCommandGroup(name, commands);
  if (group.length > 0) return formatGroupHelp(group, page);
  const command = commands.find(({ names }) => names.includes(name));
  return command && formatOneCommand(command, page);
}

function formatGroupHelp(group: readonly Command[], page: Page): string {
  return group.map((command) => formatOneCommand(command, page)).join("\n");
}

function formatOneCommand(command: Command, page: Page): string {
  const flags = command.flags.map((flag): [string, string] => [describeFlag(flag), describeValues(flag)]);
  return [
    page.style.bold(getSynopsis(command)),
    ...indentText(command.about, page),
    ...(flags.length === 0 ? [] : ["", ...alignColumns(flags, page)]),
    ...(command.more === undefined ? [] : ["", ...command.more.flatMap((text) => indentText(text, page))]),
    "",
  ].join("\n");
}

function getSynopsis({ names, operands }: Command): string {
  return ["fairlead", names[0], operands?.text ?? ""].join(" ").trim();
}

function describeFlag({ name, short, value }: Flag): string {
  const before = short === undefined ? "" : `-${short}, `;
  return `${before}--${name}${value === undefined ? "" : ` ${value}`}`;
}

function describeValues({ about, repeats }: Flag): string {
  return repeats === true ? `${about}; may be repeated` : about;
}

/** Formats names and descriptions in two columns, or below each other in a narrow terminal. */
function alignColumns(lines: readonly [string, string][], { style, width }: Page): string[] {
  const left = 4 + Math.max(...lines.map(([name]) => name.length));
  if (width - left < minTextWidth)
    return lines.flatMap(([name, about]) => [`  ${style.cyan(name)}`, ...wrapIndented(about, 6, width)]);
  return lines.flatMap(([name, about]) => {
    const [first = "", ...rest] = wrapIndented(about, left, width);
    return [`  ${style.cyan(name)}${first.slice(2 + name.length)}`, ...rest];
  });
}

/** Minimum columns of the descriptions. */
const minTextWidth = 30;

const indentText = (text: string, { width }: Page): string[] => wrapIndented(text, 2, width);

function wrapIndented(text: string, left: number, width: number): string[] {
  return wrapWords(text, width - left).map((line) => " ".repeat(left) + line);
}
