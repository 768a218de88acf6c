import { messageOf } from "../base/errors.ts";
import type { Command } from "./command.ts";
import { findCommand, parseCall } from "./command-line.ts";
import { commands } from "./command-table.ts";
import { exitCodes, helpOn, helpOnAll } from "./help.ts";
import { endWithReader, remark } from "./output.ts";
import { styleFor } from "./style.ts";
import { UsageError } from "./usage.ts";
import { version } from "./version.ts";

/** Runs a command of the command line and answers its exit code. */
export async function runCommand(words: readonly string[]): Promise<number> {
  endWithReader();
  try {
    return await run(words, commands);
  } catch (error) {
    remark(messageOf(error));
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
  const style = styleFor(process.stdout, process.env);
  if (words.length === 0) return helpOnAll(commands, style);
  const text = helpOn(words, commands, style);
  if (text === undefined) throw new UsageError(`there is no command "${words.join(" ")}"`);
  return text;
}
