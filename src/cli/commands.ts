import { messageOf } from "../base/errors.ts";
import type { Command } from "./command-line/command.ts";
import { findCommand, parseCall, describeUnknownCommand } from "./command-line/command-line.ts";
import { commands } from "./command-table.ts";
import { exitCodes, formatCommandHelp, formatOverview, maxPageWidth } from "./terminal/help.ts";
import { exitOnClosedPipe, writeNotice } from "./terminal/output.ts";
import { styleFor } from "./terminal/style.ts";
import { UsageError } from "./command-line/usage.ts";
import { version } from "./command-line/version.ts";

/** Runs a command and returns its exit code. */
export async function runCommand(words: readonly string[]): Promise<number> {
  exitOnClosedPipe();
  try {
    return await run(words, commands);
  } catch (error) {
    writeNotice(messageOf(error));
    if (!(error instanceof UsageError)) return exitCodes.failed;
    process.stderr.write(`Try fairlead ${error.command === undefined ? "" : `${error.command} `}--help.\n`);
    return exitCodes.usage;
  }
}

async function run(words: readonly string[], commands: readonly Command[]): Promise<number> {
  const parsed = findCommand(words, commands);
  switch (parsed.kind) {
    case "version":
      process.stdout.write(`${version}\n`);
      return exitCodes.done;
    case "help":
      process.stdout.write(help(parsed.words, commands));
      return exitCodes.done;
    case "call": {
      const call = parseCall(parsed.command, parsed.args, commands);
      return (await parsed.command.load())(call, commands);
    }
  }
}

function help(words: readonly string[], commands: readonly Command[]): string {
  const width = Math.min(process.stdout.columns || maxPageWidth, maxPageWidth);
  const page = { style: styleFor(process.stdout, process.env), width };
  if (words.length === 0) return formatOverview(commands, page);
  const text = formatCommandHelp(words, commands, page);
  if (text === undefined) throw new UsageError(describeUnknownCommand(words.join(" "), commands));
  return text;
}
