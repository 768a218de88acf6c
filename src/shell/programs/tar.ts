import type { OpaqueReason } from "../opaque-reason.ts";
import { addOptionFiles, addUnseenWrites } from "./operands.ts";
import { inFolder } from "../syntax/working-dirs.ts";
import { hasOption, readOptions, words } from "./options.ts";
import type { Options } from "./options.ts";
import type { Invocation, EvalContext } from "../part.ts";
import { addPath } from "../syntax/paths.ts";
import type { PathUse } from "../syntax/paths.ts";
import { programDoubt } from "./program.ts";
import { programOf } from "./program-table.ts";
import type { Program } from "./program-table.ts";
import { literalArgument } from "../syntax/word.ts";
import type { Argument } from "../syntax/word.ts";

/** Its first word may be options without a dash; extracting writes below the folder it runs in. */
export function describeTar({ scan, args, place }: Invocation): OpaqueReason | undefined {
  const program: Program = { ...programOf("tar"), texts: `${programOf("tar")?.texts ?? ""} -f --file` };
  const options = readOptions(unbundled(args, program), program);
  addOptionFiles(scan, options, program, place);
  const mode = options.found.map(({ name }) => name);
  const extracts = mode.some((name) => /^-(?:x|-extract|-get)$/.test(name));
  const creates = mode.some((name) => /^-(?:c|r|u|A|-create|-append|-update|-delete)$/.test(name));
  for (const { name, value } of options.found) {
    if (value && /^-(?:f|-file)$/.test(name))
      addPath(scan, value, { access: creates ? "edit" : "read" }, place);
    if (value && /^-(?:C|-directory)$/.test(name))
      addPath(scan, value, { access: extracts ? "edit" : "visible", folder: true, below: true }, place);
  }
  if (extracts && !hasOption(options, "-C --directory")) addUnseenWrites(scan, place);
  const member: PathUse = { access: "read", within: true, follows: hasOption(options, program.follows) };
  for (const from of extracts ? [] : memberFolders(options, place))
    for (const operand of options.operands) addPath(scan, operand, member, from);
  return programDoubt(options, program);
}

/** Where the members of a new archive may be: each `-C` counts for what stands behind it. */
function memberFolders({ found }: Options, place: EvalContext): EvalContext[] {
  const folders = found.flatMap(({ name, value }) =>
    /^-(?:C|-directory)$/.test(name) && value ? [value] : [],
  );
  let current = place;
  return [place, ...folders.map((folder) => (current = inFolder(current, folder)))];
}

/** `xfC a folder` as `-x -f a -C folder`: letters without a dash take the words behind them in their order. */
function unbundled(args: readonly Argument[], program: Program): readonly Argument[] {
  const [first, ...rest] = args;
  if (!first || !/^[A-Za-z]+$/.test(first.text)) return args;
  const valued = new Set(
    [program.values, program.texts, program.reads, program.lists, program.writes].flatMap((list) => [
      ...words(list),
    ]),
  );
  let next = 0;
  const options = first.text.split("").flatMap((letter) => {
    const option = literalArgument(`-${letter}`);
    const value = valued.has(option.text) ? rest[next++] : undefined;
    return value ? [option, value] : [option];
  });
  return [...options, ...rest.slice(next)];
}
