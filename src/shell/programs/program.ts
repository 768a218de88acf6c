import { doubts } from "../opaque-reason.ts";
import type { OpaqueReason } from "../opaque-reason.ts";
import { addOperands, addOptionFiles, addUnseenWrites } from "./operands.ts";
import { dangersIn, hasOption, readOptions, words } from "./options.ts";
import type { Options } from "./options.ts";
import type { Invocation } from "../part.ts";
import { addVisiblePaths } from "../syntax/paths.ts";
import type { Program } from "./program-table.ts";
import type { Argument } from "../syntax/word.ts";

/** Adds the files of a program as its entry in the table says; of an unknown one, whatever looks like a path. */
export function describeProgram(
  { scan, args, place }: Invocation,
  program: Program | undefined,
): OpaqueReason | undefined {
  if (!program) {
    for (const arg of args) addVisiblePaths(scan, arg, place, "read");
    return undefined;
  }
  const options = readOptions(args, program);
  addOptionFiles(scan, options, program, place);
  addOperands(scan, options, program, place);
  if (program.writesUnseen && !hasOption(options, program.looks) && !hasOption(options, program.fills))
    addUnseenWrites(scan, place);
  return programDoubt(options, program);
}

/** Why the options and words of a program make it opaque. */
export function programDoubt(options: Options, program: Program): OpaqueReason | undefined {
  if (program.opaque) return { reason: program.opaque };
  const dangers = dangersIn(options, program.danger);
  if (options.unsure && program.danger) return doubts.unsure;
  if (dangers.length > 0) return doubts.option(dangers);
  const setting = options.operands.find(({ text }) =>
    words(program.settings).has(/^[^=]*(?==)/.exec(text)?.[0] ?? ""),
  );
  if (setting) return doubts.option([setting.text]);
  return program.runsInput && runsItsInput(options) ? { reason: doubts.input.reason } : undefined;
}

/** A script that comes from a pipe or a process: `-`, `/dev/stdin`, `<(…)`. */
export function isInput(script: Argument): boolean {
  return script.text === "-" || (script.values ?? []).some((value) => /^\/(?:dev|proc)\//.test(value.text));
}

const answersOnly = "--version -V -v --help -h --test -m --run --check";

function runsItsInput(options: Options): boolean {
  const [script] = options.operands;
  return script ? isInput(script) : !hasOption(options, answersOnly);
}
