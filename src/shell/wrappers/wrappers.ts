import { findAssignmentReason, opaqueReasons } from "../opaque-reason.ts";
import type { OpaqueReason } from "../opaque-reason.ts";
import { type PipedFiles, isReader } from "../programs/piped-files.ts";
import { findFlags, hasFlag, parseOptions, findUnknownFlags } from "../programs/options.ts";
import { toAssignment } from "../syntax/assignments.ts";
import type { Invocation, ShellAssignment, SimpleCommand } from "../facts.ts";
import { addPath, addUnknownPath, addVisiblePaths } from "../syntax/paths.ts";
import { runTexts } from "./shells.ts";
import { canonicalText, unknownArguments } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";
import type { Wrapper } from "./wrapper-table.ts";

export function describeWrapper(
  { scan, args, command, evalContext }: Invocation,
  wrapper: Wrapper,
): OpaqueReason | undefined {
  const options = parseOptions(args, { ...wrapper, stopsAtFirstOperand: true });
  for (const { name, value } of options.flags) {
    if (value && wrapper.appendsArguments && /^-(?:a|-arg-file)$/.test(name))
      addPath(scan, value, { access: "read" }, evalContext);
    else if (value && /^-(?:o|-output)$/.test(name) && hasFlag(options, wrapper.dangerousFlags))
      addPath(scan, value, { access: "write" }, evalContext);
    else if (value) addVisiblePaths(scan, value, evalContext);
  }
  const dangers = findFlags(options, wrapper.dangerousFlags);
  if (dangers.length > 0)
    addUnknownPath(
      scan,
      canonicalText(command.argv),
      { access: "visible" },
      opaqueReasons.option(dangers).reason,
    );
  if (options.operands.length === 0 || hasFlag(options, wrapper.runsNothingFlags))
    return dangers.length > 0 ? opaqueReasons.option(dangers) : undefined;
  const [first] = options.operands;
  if (wrapper.createsFirstOperand && first) addPath(scan, first, { access: "write" }, evalContext);
  const marks = options.flags.flatMap(({ name, value }) =>
    /^-(?:I|-replace)$/.test(name) && value ? [value.text] : [],
  );
  const end = hasFlag(options, "-0 --null") ? "nul" : "line";
  const input = () => (hasFlag(options, "-a --arg-file -d --delimiter") ? undefined : evalContext.input(end));
  const inner = createWrappedCommand(options.operands, wrapper, { marks: ["{}", ...marks], input }, command);
  if (wrapper.buildsCommands) return { reason: "it builds commands from its input", runsUnknownText: true };
  const doubt = wrapper.runsShellText ? runTexts(inner.argv, evalContext, "sh") : undefined;
  if ((!wrapper.runsShellText || doubt) && inner.argv.length > 0) scan.addWrapped(inner, evalContext);
  if (dangers.length > 0) return opaqueReasons.option(dangers);
  const wordless = { ...options, flags: options.flags.filter(({ value }) => value === undefined) };
  const [unknown] = findUnknownFlags(
    wordless,
    wrapper.valueFlags,
    wrapper.harmlessFlags,
    wrapper.runsNothingFlags,
    wrapper.dangerousFlags,
  );
  if (unknown)
    return {
      reason: `${unknown} may take the next word, so that the command is not known`,
      runsUnknownText: true,
    };
  return doubt ?? findAssignmentReason(inner) ?? (options.isUncertain ? opaqueReasons.unsure : undefined);
}

function createWrappedCommand(
  operands: readonly Argument[],
  wrapper: Wrapper,
  added: { marks: readonly string[]; input: () => PipedFiles },
  command: SimpleCommand,
): SimpleCommand {
  let rest = operands.slice(wrapper.skippedOperands ?? 0);
  const assignments: ShellAssignment[] = [];
  while (wrapper.acceptsAssignments && /^\w+=/.test(rest[0]?.text ?? "")) {
    const [word] = rest;
    if (word) assignments.push(toAssignment(word));
    rest = rest.slice(1);
  }
  const argv = wrapper.appendsArguments && rest.length > 0 ? appendInput(rest, added) : rest;
  return { ...command, argv, assignments, raw: canonicalText(argv) };
}

/** Appends the arguments from the input; they are known if the command only reads files. */
function appendInput(
  rest: readonly Argument[],
  { marks, input }: { marks: readonly string[]; input: () => PipedFiles },
): Argument[] {
  const values = isReader(rest) ? input() : undefined;
  return [...rest.map((word) => replaceMark(word, marks, values)), { ...unknownArguments, values }];
}

/** Replaces the wrapper's placeholder (`{}`) in a word by its input. */
function replaceMark(word: Argument, marks: readonly string[], values: PipedFiles): Argument {
  const mark = marks.find((mark) => word.text.includes(mark));
  if (mark === undefined) return word;
  if (mark === word.text && values !== undefined) return { ...word, values, known: "" };
  return { ...word, values: undefined, known: word.text.slice(0, word.text.indexOf(mark)) };
}
