import { basename, extname, isAbsolute } from "node:path";
import { hasOption, words } from "./options.ts";
import type { Options } from "./options.ts";
import type { EvalContext, Scan } from "../part.ts";
import { addListed, addPath, addVisiblePaths, fileOfAddress } from "../syntax/paths.ts";
import type { PathUse } from "../syntax/paths.ts";
import type { Program } from "./program-table.ts";
import { literalArgument } from "../syntax/word.ts";
import type { Argument, Value } from "../syntax/word.ts";

/** Adds the files that the options of a program name. */
export function addOptionFiles(scan: Scan, options: Options, program: Program, place: EvalContext): void {
  const [reads, writes, uploads] = [words(program.reads), words(program.writes), words(program.uploads)];
  const [fills, lists] = [words(program.fills), words(program.lists)];
  for (const { name, value, isText } of options.found) {
    if (!value || isText) continue;
    if (fills.has(name)) {
      addFilled(scan, value, options.operands, place);
      continue;
    }
    if (lists.has(name)) {
      addListed(scan, value, place);
      continue;
    }
    if (uploads.has(name)) addUpload(scan, value, place);
    if (writes.has(name)) addPath(scan, value, { access: "edit" }, place);
    else if (reads.has(name)) addPath(scan, value, { access: "read" }, place);
    else if (!uploads.has(name))
      addVisiblePaths(scan, value, place, program.operands === undefined ? "read" : "visible");
  }
}

/** Adds the files that the operands of a program name. */
export function addOperands(scan: Scan, options: Options, program: Program, place: EvalContext): void {
  const skipped = program.skip && !hasOption(options, program.instead) ? program.skip : 0;
  const operands = options.operands.slice(skipped);
  const below = program.below === "*" || hasOption(options, program.below);
  const follows = hasOption(options, program.follows);
  const edit: PathUse = { access: "edit", below, follows, removes: program.removes ?? false };
  const within = program.searches === "*" || hasOption(options, program.searches);
  const read: PathUse = { access: "read", within, follows };
  if (hasOption(options, program.makes)) return operands.forEach((file) => addPath(scan, file, edit, place));
  switch (program.operands) {
    case "text":
      return;
    case "address":
      return addAddresses(scan, operands, savesFiles(options, program), place);
    case "read":
      return addReads(scan, operands, program, read, place);
    case "write":
      return operands.forEach((file) => addPath(scan, file, edit, place));
    case "change":
      if (hasOption(options, program.looks)) return addReads(scan, operands, program, read, place);
      return operands.forEach((file) => addChange(scan, file, edit, place));
    case "pack":
      if (hasOption(options, program.takes)) addTaken(scan, operands.slice(1), place);
      return addPacked(scan, operands, read, edit, place);
    case "clone":
      return addClone(scan, operands, place);
    case "folder":
      return addFolders(scan, operands, follows, place);
    case "copy":
    case "move":
    case "link":
      return addCopies(scan, operands, program, options, { read, edit }, place);
    case "name":
      return operands.forEach((operand) => addVisiblePaths(scan, operand, place));
    case undefined:
      return operands.forEach((operand) => addVisiblePaths(scan, operand, place, "read"));
  }
}

/** Without one it is the folder that it runs in. */
export function addFolders(
  scan: Scan,
  folders: readonly Argument[],
  follows: boolean,
  place: EvalContext,
): void {
  const all = folders.length === 0 && follows ? [literalArgument(".")] : folders;
  for (const folder of all) addPath(scan, folder, { access: "visible", folder: true, follows }, place);
}

/** Files below the folder, named by what the program reads. */
export function addUnseenWrites(scan: Scan, place: EvalContext): void {
  scan.rearrange();
  addPath(scan, literalArgument("."), { access: "edit", folder: true, below: true }, place);
}

/** A folder gets files with the names of the sources, or with such as nobody names here. */
function addFilled(scan: Scan, folder: Argument, sources: readonly Argument[], place: EvalContext): void {
  scan.rearrange();
  addPath(scan, folder, { access: "edit", folder: true, below: true }, place);
  for (const source of sources)
    for (const inside of namesInside(scan, folder, source, place))
      addPath(scan, inside, { access: "edit" }, place);
}

/** `@file`, `<file` or `name=@file;type=…`; another text is sent as it is. */
function addUpload(scan: Scan, value: Argument, place: EvalContext): void {
  if (!value.values)
    return /[@<]/.test(value.known) || value.known === ""
      ? addPath(scan, value, { access: "read" }, place)
      : undefined;
  for (const { text } of value.values) {
    const file = /^[^@<]*[@<]([^;]+)/.exec(text)?.[1];
    if (file && !text.includes("://")) addPath(scan, literalArgument(file), { access: "read" }, place);
  }
}

/** The result has another ending. */
function addChange(scan: Scan, file: Argument, edit: PathUse, place: EvalContext): void {
  addPath(scan, file, { access: "read" }, place);
  addPath(scan, file, edit, place);
  addPath(scan, mapText(file, withoutEnding), edit, place);
  addBeginning(
    scan,
    mapText(file, (path) => `${withoutEnding(path)}.`),
    place,
  );
}

function withoutEnding(path: string): string {
  return path.slice(0, path.length - extname(path).length);
}

/** What is packed is gone afterwards. */
function addTaken(scan: Scan, members: readonly Argument[], place: EvalContext): void {
  for (const member of members) addPath(scan, member, { access: "edit", below: true, removes: true }, place);
}

/** An archive may get an ending of its own. */
function addPacked(
  scan: Scan,
  [archive, ...members]: readonly Argument[],
  read: PathUse,
  edit: PathUse,
  place: EvalContext,
): void {
  if (archive) addPath(scan, archive, edit, place);
  if (archive)
    addPath(
      scan,
      mapText(archive, (text) => `${text}.zip`),
      edit,
      place,
    );
  for (const member of members) addPath(scan, member, read, place);
}

/** Files whose names begin with the word. */
export function addBeginning(scan: Scan, beginning: Argument, place: EvalContext): void {
  const values = beginning.values?.map(({ text }) => ({ text: `${text}*`, glob: true }));
  addPath(scan, { ...beginning, values }, { access: "edit" }, place);
}

function mapText(argument: Argument, change: (text: string) => string): Argument {
  const values = argument.values?.map((value) => ({ text: change(value.text), glob: value.glob }));
  return { ...argument, text: change(argument.text), values };
}

function savesFiles(options: Options, program: Program): boolean {
  if (program.saves !== "*") return hasOption(options, program.saves);
  return !hasOption(options, program.writes) && !hasOption(options, program.fills);
}

/** A file's address is read; what is fetched may be saved under the last name of its address. */
function addAddresses(scan: Scan, addresses: readonly Argument[], saves: boolean, place: EvalContext): void {
  for (const address of addresses) {
    const { values = [], known } = address;
    if (address.values === undefined && /^(?:file:|$)/i.test(known) && address.text.includes("file:"))
      addPath(scan, address, { access: "read" }, place);
    for (const { text } of values) {
      const file = fileOfAddress(text);
      if (file !== undefined) addPath(scan, literalArgument(file), { access: "read" }, place);
      const name = saves ? basename(text.replace(/[?#].*$/s, "")) : "";
      if (name !== "") addPath(scan, literalArgument(name), { access: "edit" }, place);
    }
  }
}

/** The folder that is named, or one with the name of what is cloned. */
function addClone(scan: Scan, [from, to]: readonly Argument[], place: EvalContext): void {
  scan.rearrange();
  if (from) addVisiblePaths(scan, from, place);
  const folders = to ? [to] : (from?.values ?? []).map(({ text }) => literalArgument(clonedName(text)));
  for (const folder of folders) addPath(scan, folder, { access: "edit", folder: true, below: true }, place);
}

function clonedName(address: string): string {
  return (
    basename(address.replace(/\/+$/, ""))
      .replace(/^.*:/, "")
      .replace(/\.git$/, "") || "."
  );
}

/** Of a program that runs a script only the script is known to be read. */
function addReads(
  scan: Scan,
  operands: readonly Argument[],
  program: Program,
  read: PathUse,
  place: EvalContext,
): void {
  for (const [index, file] of operands.entries()) {
    if (program.leads && index > 0) addVisiblePaths(scan, file, place);
    else addPath(scan, file, read, place);
  }
  if (operands.length === 0 && read.within && program.operands === "read")
    addPath(scan, literalArgument("."), read, place);
}

/** The last operand is written unless an option names the target; a folder gets files with the sources' names. */
function addCopies(
  scan: Scan,
  operands: readonly Argument[],
  program: Program,
  options: Options,
  uses: { read: PathUse; edit: PathUse },
  place: EvalContext,
): void {
  scan.rearrange();
  const target = targetOf(operands, program, options);
  const edit = { ...uses.edit, removes: false };
  const sources = target && operands.length > 1 ? operands.slice(0, -1) : operands;
  for (const source of sources) {
    if (/^[\w.@-]+:(?!\/\/)/.test(source.text)) continue;
    addPath(scan, source, uses.read, place);
    if (program.operands === "move") addPath(scan, source, uses.edit, place);
    if (program.links === "*" || hasOption(options, program.links))
      addPath(scan, source, { access: "edit", below: true }, place);
  }
  if (!target || /^[\w.@-]+:/.test(target.text)) return;
  const inside = sources.flatMap((source) =>
    source === target ? [] : namesInside(scan, target, source, place),
  );
  for (const file of [target, ...inside]) addPath(scan, file, edit, place);
  if (!hasOption(options, program.spares)) return;
  const suffix = options.found.find(({ name, value }) => value && /^-(?:S|-suffix)$/.test(name))?.value;
  for (const file of [target, ...inside]) addSpareCopy(scan, file, suffix?.text ?? "~", place);
}

/** What is overwritten is kept under a longer name, or under a numbered one. */
function addSpareCopy(scan: Scan, file: Argument, suffix: string, place: EvalContext): void {
  addPath(
    scan,
    mapText(file, (text) => text + suffix),
    { access: "edit" },
    place,
  );
  addBeginning(
    scan,
    mapText(file, (text) => `${text}.~`),
    place,
  );
}

/** A wildcard alone may stand for sources and a target; a link without one is made where the shell is. */
function targetOf(operands: readonly Argument[], program: Program, options: Options): Argument | undefined {
  if (hasOption(options, program.fills)) return undefined;
  const last = operands.at(-1);
  if (operands.length !== 1) return last;
  if (program.operands === "link") return literalArgument(".");
  return last?.values?.some(({ glob }) => glob) === true ? last : undefined;
}

/** `cp x/.env folder` may write `folder/.env`; `cp -r x/. folder` and `cp x/* folder` what lies in `x` now. */
function namesInside(scan: Scan, target: Argument, source: Argument, place: EvalContext): Argument[] {
  if (!target.values) return [];
  const names = (source.values ?? [{ text: "*", glob: true }]).flatMap((value) => [
    { text: basename(value.text), glob: value.glob },
    ...namesBelow(scan, value, place).map((text) => ({ text, glob: false })),
  ]);
  return target.values.flatMap((folder) =>
    names.map((name): Argument => {
      const text = `${folder.text.replace(/\/+$/, "") || "/"}/${name.text}`;
      return { ...literalArgument(text), values: [{ text, glob: folder.glob || name.glob }] };
    }),
  );
}

/** Names in a folder that is copied with what it holds (`x/`, `x/.`, `x/*`). */
function namesBelow(scan: Scan, { text }: Value, { bases }: EvalContext): readonly string[] {
  const folder = /^(.*?)\/+(?:\.|\*|)$/s.exec(text)?.[1];
  if (folder === undefined || /[*?]/.test(folder)) return [];
  const from = isAbsolute(text) ? ["/"] : (bases ?? []);
  return from.flatMap((base) => scan.context.list?.(scan.realPath(base, folder || "/")) ?? []);
}
