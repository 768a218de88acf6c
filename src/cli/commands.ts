import { messageOf } from "../base/errors.ts";
import type { Command } from "./command-line/command.ts";
import { findCommand, parseCall, unknownCommand } from "./command-line/command-line.ts";
import { commands } from "./command-table.ts";
import { exitCodes, helpOn, helpOnAll, widestPage } from "./terminal/help.ts";
import { endWithReader, writeNotice } from "./terminal/output.ts";
import { styleFor } from "./terminal/style.ts";
import { UsageError } from "./command-line/usage.ts";
import { version } from "./command-line/version.ts";

/** Runs a command of the command line and answers its exit code. */
export async function runCommand(words: readonly string[]): Promise<number> {
  endWithReader();
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
  const asked = findCommand(words, commands);
  switch (asked.kind) {
    case "version":
      process.stdout.write(`${version}\n`);
      return exitCodes.done;
    case "help":
      process.stdout.write(help(asked.words, commands));
      return exitCodes.done;
    case "call": {
      const call = parseCall(asked.command, asked.args, commands);
      return (await asked.command.load())(call, commands);
    }
  }
}

function help(words: readonly string[], commands: readonly Command[]): string {
  const width = Math.min(process.stdout.columns || widestPage, widestPage);
  const page = { style: styleFor(process.stdout, process.env), width };
  if (words.length === 0) return helpOnAll(commands, page);
  const text = helpOn(words, commands, page);
  if (text === undefined) throw new UsageError(unknownCommand(words.join(" "), commands));
  return text;
}
