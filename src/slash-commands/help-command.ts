import { nearest } from "../base/text/nearest.ts";

/** The parts of a command that `/help` shows. */
interface ListedCommand {
  readonly name: string;
  readonly description: string;
  readonly hint?: string | undefined;
}

/** Lists commands with their hints, one per line. */
export function describeCommands(commands: readonly ListedCommand[]): string {
  const lines = commands.map(
    ({ name, hint, description }) =>
      `- \`/${name}${hint === undefined ? "" : ` [${hint}]`}\`: ${description.replaceAll(/\s+/g, " ")}`,
  );
  return [
    "**Commands**",
    "",
    ...lines,
    "",
    "`@` attaches a file or names a subagent. Everything else goes to the model.",
  ].join("\n");
}

/** Text at the start of a message that looks like a command and not like a path. */
const commandWord = /^\/([A-Za-z][\w:-]*)(?=\s|$)/;

/** Returns the name of the command that a message seems to call; undefined for any other text. */
export function findCommandWord(text: string): string | undefined {
  return commandWord.exec(text.trim())?.[1];
}

/** Says that a command does not exist and which one was probably meant. */
export function describeUnknownCommand(name: string, commands: readonly ListedCommand[]): string {
  const near = nearest(
    name,
    commands.map((command) => command.name),
  );
  const hint = near === undefined ? "" : ` Did you mean \`/${near}\`?`;
  return `There is no command \`/${name}\`.${hint} \`/help\` lists the commands. Nothing was sent to the model; to send this text, write a word before the slash.`;
}
