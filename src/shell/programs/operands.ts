import { basename, extname, isAbsolute } from "node:path/posix";
import { hasFlag, splitWords } from "./options.ts";
import type { ParsedOptions } from "./options.ts";
import type { EvalContext, Scan } from "../facts.ts";
import { addFileList, addPath, addVisiblePaths, parseFileUrl } from "../syntax/paths.ts";
import type { PathUse } from "../syntax/paths.ts";
import type { Program } from "./program-table.ts";
import { literalArgument } from "../syntax/word.ts";
import type { Argument, Value } from "../syntax/word.ts";

/** Adds the files that the options of a program name. */
export function addOptionFiles(
  scan: Scan,
  options: ParsedOptions,
  program: Program,
  evalContext: EvalContext,
): void {
  const [reads, writes, uploads] = [
    splitWords(program.inputFileFlags),
    splitWords(program.outputFileFlags),
    splitWords(program.uploadFlags),
  ];
  const [fills, lists] = [splitWords(program.outputDirFlags), splitWords(program.fileListFlags)];
  for (const { name, value, isText } of options.flags) {
    if (!value || isText) continue;
    if (fills.has(name)) {
      addOutputFolder(scan, value, options.operands, evalContext);
      continue;
    }
    if (lists.has(name)) {
      addFileList(scan, value, evalContext);
      continue;
    }
    if (uploads.has(name)) addUpload(scan, value, evalContext);
    if (writes.has(name)) addPath(scan, value, { access: "write" }, evalContext);
    else if (reads.has(name)) addPath(scan, value, { access: "read" }, evalContext);
    else if (!uploads.has(name))
      addVisiblePaths(scan, value, evalContext, program.operands === undefined ? "read" : "visible");
  }
}

/** Adds the files that the operands of a program name. */
export function addOperands(
  scan: Scan,
  options: ParsedOptions,
  program: Program,
  evalContext: EvalContext,
): void {
  const skipped =
    program.skippedOperands && !hasFlag(options, program.patternFlags) ? program.skippedOperands : 0;
  const operands = options.operands.slice(skipped);
  const below = program.recursiveWriteFlags === "*" || hasFlag(options, program.recursiveWriteFlags);
  const follows = hasFlag(options, program.followLinkFlags);
  const edit: PathUse = { access: "write", below, follows, removes: program.removesFiles ?? false };
  const within = program.recursiveReadFlags === "*" || hasFlag(options, program.recursiveReadFlags);
  const read: PathUse = { access: "read", within, follows };
  if (hasFlag(options, program.mkdirFlags))
    return operands.forEach((file) => addPath(scan, file, edit, evalContext));
  switch (program.operands) {
    case "text":
      return;
    case "address":
      return addAddresses(scan, operands, savesFiles(options, program), evalContext);
    case "read":
      return addReads(scan, operands, program, read, evalContext);
    case "write":
      return operands.forEach((file) => addPath(scan, file, edit, evalContext));
    case "change":
      if (hasFlag(options, program.readOnlyFlags))
        return addReads(scan, operands, program, read, evalContext);
      return operands.forEach((file) => addConvertedFile(scan, file, edit, evalContext));
    case "pack":
      if (hasFlag(options, program.removeSourceFlags))
        addRemovedSources(scan, operands.slice(1), evalContext);
      return addArchive(scan, operands, read, edit, evalContext);
    case "clone":
      return addClone(scan, operands, evalContext);
    case "folder":
      return addFolders(scan, operands, follows, evalContext);
    case "copy":
    case "move":
    case "link":
      return addCopies(scan, operands, program, options, { read, edit }, evalContext);
    case "name":
      return operands.forEach((operand) => addVisiblePaths(scan, operand, evalContext));
    case undefined:
      return operands.forEach((operand) => addVisiblePaths(scan, operand, evalContext, "read"));
  }
}

/** Adds folders that are listed; the working folder if there is no operand. */
export function addFolders(
  scan: Scan,
  folders: readonly Argument[],
  follows: boolean,
  evalContext: EvalContext,
): void {
  const all = folders.length === 0 && follows ? [literalArgument(".")] : folders;
  for (const folder of all) addPath(scan, folder, { access: "visible", folder: true, follows }, evalContext);
}

/** Adds the working folder, below which files are written that the arguments do not name. */
export function addUnnamedWrites(scan: Scan, evalContext: EvalContext): void {
  scan.invalidateListings();
  addPath(scan, literalArgument("."), { access: "write", folder: true, below: true }, evalContext);
}

/** Adds a folder in which files are written: copies of the sources, or files with unknown names. */
function addOutputFolder(
  scan: Scan,
  folder: Argument,
  sources: readonly Argument[],
  evalContext: EvalContext,
): void {
  scan.invalidateListings();
  addPath(scan, folder, { access: "write", folder: true, below: true }, evalContext);
  for (const source of sources)
    for (const inside of pathsInTarget(scan, folder, source, evalContext))
      addPath(scan, inside, { access: "write" }, evalContext);
}

/** Adds the file in `@file`, `<file` or `name=@file;type=…`; other values are sent as text. */
function addUpload(scan: Scan, value: Argument, evalContext: EvalContext): void {
  if (!value.values)
    return /[@<]/.test(value.known) || value.known === ""
      ? addPath(scan, value, { access: "read" }, evalContext)
      : undefined;
  for (const { text } of value.values) {
    const file = /^[^@<]*[@<]([^;]+)/.exec(text)?.[1];
    if (file && !text.includes("://")) addPath(scan, literalArgument(file), { access: "read" }, evalContext);
  }
}

/** Adds a file that is replaced by one with another extension. */
function addConvertedFile(scan: Scan, file: Argument, edit: PathUse, evalContext: EvalContext): void {
  addPath(scan, file, { access: "read" }, evalContext);
  addPath(scan, file, edit, evalContext);
  addPath(scan, mapArgumentText(file, removeExtension), edit, evalContext);
  addFilesWithPrefix(
    scan,
    mapArgumentText(file, (path) => `${removeExtension(path)}.`),
    evalContext,
  );
}

function removeExtension(path: string): string {
  return path.slice(0, path.length - extname(path).length);
}

/** Adds files that are deleted after packing. */
function addRemovedSources(scan: Scan, members: readonly Argument[], evalContext: EvalContext): void {
  for (const member of members)
    addPath(scan, member, { access: "write", below: true, removes: true }, evalContext);
}

/** Adds an archive, also with the extension that the program may add, and its members. */
function addArchive(
  scan: Scan,
  [archive, ...members]: readonly Argument[],
  read: PathUse,
  edit: PathUse,
  evalContext: EvalContext,
): void {
  if (archive) addPath(scan, archive, edit, evalContext);
  if (archive)
    addPath(
      scan,
      mapArgumentText(archive, (text) => `${text}.zip`),
      edit,
      evalContext,
    );
  for (const member of members) addPath(scan, member, read, evalContext);
}

/** Adds the files whose names begin with the word. */
export function addFilesWithPrefix(scan: Scan, beginning: Argument, evalContext: EvalContext): void {
  const values = beginning.values?.map(({ text }) => ({ text: `${text}*`, glob: true }));
  addPath(scan, { ...beginning, values }, { access: "write" }, evalContext);
}

function mapArgumentText(argument: Argument, change: (text: string) => string): Argument {
  const values = argument.values?.map((value) => ({ text: change(value.text), glob: value.glob }));
  return { ...argument, text: change(argument.text), values };
}

function savesFiles(options: ParsedOptions, program: Program): boolean {
  if (program.saveByUrlNameFlags !== "*") return hasFlag(options, program.saveByUrlNameFlags);
  return !hasFlag(options, program.outputFileFlags) && !hasFlag(options, program.outputDirFlags);
}

/** Adds local files among the URLs, and the files under which downloads are saved. */
function addAddresses(
  scan: Scan,
  addresses: readonly Argument[],
  saves: boolean,
  evalContext: EvalContext,
): void {
  for (const address of addresses) {
    const { values = [], known } = address;
    if (address.values === undefined && /^(?:file:|$)/i.test(known) && address.text.includes("file:"))
      addPath(scan, address, { access: "read" }, evalContext);
    for (const { text } of values) {
      const file = parseFileUrl(text);
      if (file !== undefined) addPath(scan, literalArgument(file), { access: "read" }, evalContext);
      const name = saves ? basename(text.replace(/[?#].*$/s, "")) : "";
      if (name !== "") addPath(scan, literalArgument(name), { access: "write" }, evalContext);
    }
  }
}

/** Adds the target folder of a clone, by default named after the repository. */
function addClone(scan: Scan, [from, to]: readonly Argument[], evalContext: EvalContext): void {
  scan.invalidateListings();
  if (from) addVisiblePaths(scan, from, evalContext);
  const folders = to ? [to] : (from?.values ?? []).map(({ text }) => literalArgument(getCloneFolder(text)));
  for (const folder of folders)
    addPath(scan, folder, { access: "write", folder: true, below: true }, evalContext);
}

function getCloneFolder(address: string): string {
  return (
    basename(address.replace(/\/+$/, ""))
      .replace(/^.*:/, "")
      .replace(/\.git$/, "") || "."
  );
}

/** Adds files that are read. If a program runs a script, only the script is known to be read. */
function addReads(
  scan: Scan,
  operands: readonly Argument[],
  program: Program,
  read: PathUse,
  evalContext: EvalContext,
): void {
  for (const [index, file] of operands.entries()) {
    if (program.stopsAtFirstOperand && index > 0) addVisiblePaths(scan, file, evalContext);
    else addPath(scan, file, read, evalContext);
  }
  if (operands.length === 0 && read.within && program.operands === "read")
    addPath(scan, literalArgument("."), read, evalContext);
}

/** Adds sources and target. The last operand is the target unless an option names it; it may be a folder. */
function addCopies(
  scan: Scan,
  operands: readonly Argument[],
  program: Program,
  options: ParsedOptions,
  uses: { read: PathUse; edit: PathUse },
  evalContext: EvalContext,
): void {
  scan.invalidateListings();
  const target = findTarget(operands, program, options);
  const edit = { ...uses.edit, removes: false };
  const sources = target && operands.length > 1 ? operands.slice(0, -1) : operands;
  for (const source of sources) {
    if (/^[\w.@-]+:(?!\/\/)/.test(source.text)) continue;
    addPath(scan, source, uses.read, evalContext);
    if (program.operands === "move") addPath(scan, source, uses.edit, evalContext);
    if (program.linkFlags === "*" || hasFlag(options, program.linkFlags))
      addPath(scan, source, { access: "write", below: true }, evalContext);
  }
  if (!target || /^[\w.@-]+:/.test(target.text)) return;
  const inside = sources.flatMap((source) =>
    source === target ? [] : pathsInTarget(scan, target, source, evalContext),
  );
  for (const file of [target, ...inside]) addPath(scan, file, edit, evalContext);
  if (!hasFlag(options, program.backupFlags)) return;
  const suffix = options.flags.find(({ name, value }) => value && /^-(?:S|-suffix)$/.test(name))?.value;
  for (const file of [target, ...inside]) addBackup(scan, file, suffix?.text ?? "~", evalContext);
}

/** Adds the backup of an overwritten file: with a suffix (`a~`) or a number (`a.~1~`). */
function addBackup(scan: Scan, file: Argument, suffix: string, evalContext: EvalContext): void {
  addPath(
    scan,
    mapArgumentText(file, (text) => text + suffix),
    { access: "write" },
    evalContext,
  );
  addFilesWithPrefix(
    scan,
    mapArgumentText(file, (text) => `${text}.~`),
    evalContext,
  );
}

/** Returns the target. A single wildcard may match sources and target; a single link source is linked from `.`. */
function findTarget(
  operands: readonly Argument[],
  program: Program,
  options: ParsedOptions,
): Argument | undefined {
  if (hasFlag(options, program.outputDirFlags)) return undefined;
  const last = operands.at(-1);
  if (operands.length !== 1) return last;
  if (program.operands === "link") return literalArgument(".");
  return last?.values?.some(({ glob }) => glob) === true ? last : undefined;
}

/** Paths that a copy creates in a folder: `cp x/.env d` may write `d/.env`; `cp x/* d` writes every name in `x`. */
function pathsInTarget(scan: Scan, target: Argument, source: Argument, evalContext: EvalContext): Argument[] {
  if (!target.values) return [];
  const names = (source.values ?? [{ text: "*", glob: true }]).flatMap((value) => [
    { text: basename(value.text), glob: value.glob },
    ...namesInSource(scan, value, evalContext).map((text) => ({ text, glob: false })),
  ]);
  return target.values.flatMap((folder) =>
    names.map((name): Argument => {
      const text = `${folder.text.replace(/\/+$/, "") || "/"}/${name.text}`;
      return { ...literalArgument(text), values: [{ text, glob: folder.glob || name.glob }] };
    }),
  );
}

/** Names in a source folder whose contents are copied (`x/`, `x/.`, `x/*`). */
function namesInSource(scan: Scan, { text }: Value, { workingDirs }: EvalContext): readonly string[] {
  const folder = /^(.*?)\/+(?:\.|\*|)$/s.exec(text)?.[1];
  if (folder === undefined || /[*?]/.test(folder)) return [];
  const from = isAbsolute(scan.context.readPath?.(text) ?? text) ? ["/"] : (workingDirs ?? []);
  return from.flatMap((base) => scan.context.list?.(scan.realPath(base, folder || "/")) ?? []);
}
