import type { OpaqueReason } from "../opaque-reason.ts";
import { addOptionFiles, addUnnamedWrites } from "./operands.ts";
import { enterFolder } from "../syntax/working-dirs.ts";
import { hasFlag, parseOptions, splitWords } from "./options.ts";
import type { ParsedOptions } from "./options.ts";
import type { Invocation, EvalContext } from "../facts.ts";
import { addPath } from "../syntax/paths.ts";
import type { PathUse } from "../syntax/paths.ts";
import { findOpaqueReason } from "./program.ts";
import { findProgram } from "./program-table.ts";
import type { Program } from "./program-table.ts";
import { literalArgument } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";

/** The first word may have options without a dash. Extracting writes below the working folder. */
export function describeTar({ scan, args, evalContext }: Invocation): OpaqueReason | undefined {
  const program: Program = {
    ...findProgram("tar"),
    textFlags: `${findProgram("tar")?.textFlags ?? ""} -f --file`,
  };
  const options = parseOptions(expandOldStyleOptions(args, program), program);
  addOptionFiles(scan, options, program, evalContext);
  const mode = options.flags.map(({ name }) => name);
  const extracts = mode.some((name) => /^-(?:x|-extract|-get)$/.test(name));
  const creates = mode.some((name) => /^-(?:c|r|u|A|-create|-append|-update|-delete)$/.test(name));
  for (const { name, value } of options.flags) {
    if (value && /^-(?:f|-file)$/.test(name))
      addPath(scan, value, { access: creates ? "write" : "read" }, evalContext);
    if (value && /^-(?:C|-directory)$/.test(name))
      addPath(
        scan,
        value,
        { access: extracts ? "write" : "visible", folder: true, below: true },
        evalContext,
      );
  }
  if (extracts && !hasFlag(options, "-C --directory")) addUnnamedWrites(scan, evalContext);
  const member: PathUse = {
    access: "read",
    within: true,
    follows: hasFlag(options, program.followLinkFlags),
  };
  for (const from of extracts ? [] : findMemberFolders(options, evalContext))
    for (const operand of options.operands) addPath(scan, operand, member, from);
  return findOpaqueReason(options, program);
}

/** Returns the folders of an archive's members: each `-C` applies to the members after it. */
function findMemberFolders({ flags: found }: ParsedOptions, evalContext: EvalContext): EvalContext[] {
  const folders = found.flatMap(({ name, value }) =>
    /^-(?:C|-directory)$/.test(name) && value ? [value] : [],
  );
  let current = evalContext;
  return [evalContext, ...folders.map((folder) => (current = enterFolder(current, folder)))];
}

/** Rewrites `xfC a folder` as `-x -f a -C folder`: letters without a dash take their values in order. */
function expandOldStyleOptions(args: readonly Argument[], program: Program): readonly Argument[] {
  const [first, ...rest] = args;
  if (!first || !/^[A-Za-z]+$/.test(first.text)) return args;
  const valued = new Set(
    [
      program.valueFlags,
      program.textFlags,
      program.inputFileFlags,
      program.fileListFlags,
      program.outputFileFlags,
    ].flatMap((list) => [...splitWords(list)]),
  );
  let next = 0;
  const options = first.text.split("").flatMap((letter) => {
    const option = literalArgument(`-${letter}`);
    const value = valued.has(option.text) ? rest[next++] : undefined;
    return value ? [option, value] : [option];
  });
  return [...options, ...rest.slice(next)];
}
