import { opaqueReasons } from "../opaque-reason.ts";
import type { OpaqueReason } from "../opaque-reason.ts";
import { addOperands, addOptionFiles, addUnnamedWrites } from "./operands.ts";
import { findFlags, hasFlag, parseOptions, splitWords } from "./options.ts";
import type { ParsedOptions } from "./options.ts";
import type { Invocation } from "../facts.ts";
import { addVisiblePaths } from "../syntax/paths.ts";
import type { Program } from "./program-table.ts";
import type { Argument } from "../syntax/word.ts";

/** Adds the files that a program's record describes. For an unknown program, adds every word that looks like a path. */
export function describeProgram(
  { scan, args, evalContext }: Invocation,
  program: Program | undefined,
): OpaqueReason | undefined {
  if (!program) {
    for (const arg of args) addVisiblePaths(scan, arg, evalContext, "read");
    return undefined;
  }
  const options = parseOptions(args, program);
  addOptionFiles(scan, options, program, evalContext);
  addOperands(scan, options, program, evalContext);
  if (
    program.writesUnnamedFiles &&
    !hasFlag(options, program.readOnlyFlags) &&
    !hasFlag(options, program.outputDirFlags)
  )
    addUnnamedWrites(scan, evalContext);
  return findOpaqueReason(options, program);
}

/** Returns why the options and operands make a program opaque; undefined if they do not. */
export function findOpaqueReason(options: ParsedOptions, program: Program): OpaqueReason | undefined {
  if (program.opaque) return { reason: program.opaque };
  const dangers = findFlags(options, program.dangerousFlags);
  if (options.isUncertain && program.dangerousFlags) return opaqueReasons.unsure;
  if (dangers.length > 0) return opaqueReasons.option(dangers);
  const setting = options.operands.find(({ text }) =>
    splitWords(program.dangerousVariables).has(/^[^=]*(?==)/.exec(text)?.[0] ?? ""),
  );
  if (setting) return opaqueReasons.option([setting.text]);
  return program.runsItsInput && readsProgramFromInput(options)
    ? { reason: opaqueReasons.input.reason }
    : undefined;
}

/** Whether a script comes from the input or another process: `-`, `/dev/stdin`, `<(…)`. */
export function isInput(script: Argument): boolean {
  return script.text === "-" || (script.values ?? []).some((value) => /^\/(?:dev|proc)\//.test(value.text));
}

const informationFlags = "--version -V -v --help -h --test -m --run --check";

function readsProgramFromInput(options: ParsedOptions): boolean {
  const [script] = options.operands;
  return script ? isInput(script) : !hasFlag(options, informationFlags);
}
