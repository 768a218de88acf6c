import { assignmentDoubt, doubts } from "../opaque-reason.ts";
import type { OpaqueReason } from "../opaque-reason.ts";
import { type PipedFiles, isReader } from "./piped-files.ts";
import { dangersIn, hasOption, readOptions, unknownIn } from "./options.ts";
import { toAssignment } from "../syntax/assignments.ts";
import type { Invocation, ShellAssignment, SimpleCommand } from "../part.ts";
import { addPath, addUnknownPath, addVisiblePaths } from "../syntax/paths.ts";
import { runTexts } from "./shells.ts";
import { canonicalText, unknownArguments } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";
import type { Wrapper } from "./wrapper-table.ts";

export function describeWrapper(
  { scan, args, command, place }: Invocation,
  wrapper: Wrapper,
): OpaqueReason | undefined {
  const options = readOptions(args, { ...wrapper, leads: true });
  for (const { name, value } of options.found) {
    if (value && wrapper.appends && /^-(?:a|-arg-file)$/.test(name))
      addPath(scan, value, { access: "read" }, place);
    else if (value && /^-(?:o|-output)$/.test(name) && hasOption(options, wrapper.danger))
      addPath(scan, value, { access: "edit" }, place);
    else if (value) addVisiblePaths(scan, value, place);
  }
  const dangers = dangersIn(options, wrapper.danger);
  if (dangers.length > 0)
    addUnknownPath(scan, canonicalText(command.argv), { access: "visible" }, doubts.option(dangers).reason);
  if (options.operands.length === 0 || hasOption(options, wrapper.looks))
    return dangers.length > 0 ? doubts.option(dangers) : undefined;
  const [first] = options.operands;
  if (wrapper.makesFirst && first) addPath(scan, first, { access: "edit" }, place);
  const marks = options.found.flatMap(({ name, value }) =>
    /^-(?:I|-replace)$/.test(name) && value ? [value.text] : [],
  );
  const end = hasOption(options, "-0 --null") ? "nul" : "line";
  const input = () => (hasOption(options, "-a --arg-file -d --delimiter") ? undefined : place.input(end));
  const inner = wrappedCommand(options.operands, wrapper, { marks: ["{}", ...marks], input }, command);
  if (wrapper.builds) return { reason: "it builds commands from its input", unseen: true };
  const doubt = wrapper.joins ? runTexts(inner.argv, place) : undefined;
  if ((!wrapper.joins || doubt) && inner.argv.length > 0) scan.addWrapped(inner, place);
  if (dangers.length > 0) return doubts.option(dangers);
  const wordless = { ...options, found: options.found.filter(({ value }) => value === undefined) };
  const [unknown] = unknownIn(wordless, wrapper.values, wrapper.flags, wrapper.looks, wrapper.danger);
  if (unknown)
    return { reason: `${unknown} may take the next word, so that the command is not known`, unseen: true };
  return doubt ?? assignmentDoubt(inner) ?? (options.unsure ? doubts.unsure : undefined);
}

function wrappedCommand(
  operands: readonly Argument[],
  wrapper: Wrapper,
  added: { marks: readonly string[]; input: () => PipedFiles },
  command: SimpleCommand,
): SimpleCommand {
  let rest = operands.slice(wrapper.skip ?? 0);
  const assignments: ShellAssignment[] = [];
  while (wrapper.assigns && /^\w+=/.test(rest[0]?.text ?? "")) {
    const [word] = rest;
    if (word) assignments.push(toAssignment(word));
    rest = rest.slice(1);
  }
  const argv = wrapper.appends && rest.length > 0 ? withAdded(rest, added) : rest;
  return { ...command, argv, assignments, raw: canonicalText(argv) };
}

/** With the arguments from the input, which are known files where the program only reads them. */
function withAdded(
  rest: readonly Argument[],
  { marks, input }: { marks: readonly string[]; input: () => PipedFiles },
): Argument[] {
  const values = isReader(rest) ? input() : undefined;
  return [...rest.map((word) => replaced(word, marks, values)), { ...unknownArguments, values }];
}

/** A word in which the wrapper puts what it reads. */
function replaced(word: Argument, marks: readonly string[], values: PipedFiles): Argument {
  const mark = marks.find((mark) => word.text.includes(mark));
  if (mark === undefined) return word;
  if (mark === word.text && values !== undefined) return { ...word, values, known: "" };
  return { ...word, values: undefined, known: word.text.slice(0, word.text.indexOf(mark)) };
}
