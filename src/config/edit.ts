import { randomUUID } from "node:crypto";
import { realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { applyEdits, modify } from "jsonc-parser";
import { codeOf, messageOf, UserError } from "../base/errors.ts";
import { makeFolder } from "../base/files/make-folder.ts";
import { readRegularFile } from "../base/files/regular-file.ts";
import { updateSharedFile } from "../storage/json/lock.ts";
import { parseConfigFile, problemsOf, writtenAt } from "./files/config-file.ts";

/** A value to set at a place in a file of JSON with comments; undefined takes away what stands there. */
export interface Setting {
  readonly path: readonly string[];
  readonly value: unknown;
}

const format = { insertSpaces: true, tabSize: 2, eol: "\n" };

/**
 * Sets values in a file of JSON with comments and leaves all else in it as it is. The file is replaced at once, and
 * made where it is not there. `lockFolder` has the locks under which processes change files. Throws {@link UserError}
 * where the file cannot be read or is not JSON.
 */
export async function setInFile(
  path: string,
  settings: readonly Setting[],
  lockFolder: string,
): Promise<void> {
  // A file of a collection of dotfiles is a link: what it names is replaced, not the link.
  const target = await realpath(path).catch(() => path);
  try {
    await updateSharedFile(target, lockFolder, () => change(path, target, settings));
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`${path} cannot be written: ${messageOf(error)}.`, { cause: error });
  }
}

async function change(path: string, target: string, settings: readonly Setting[]): Promise<void> {
  const before = await readIfThere(target);
  const text = before?.trim() ? before : "{}\n";
  const file = parseConfigFile(path, text);
  // Which of two is meant only the person knows; elsewhere in the file they are not in the way.
  const isTwice = settings.some(({ path }) => file.repeated.some((key) => isAround(key.path, path)));
  const [problem] = isTwice ? problemsOf(file) : file.problems;
  if (problem !== undefined)
    throw new UserError(`${path}:${problem.line}:${problem.column}: ${problem.message}. Mend it first.`);
  const changed = settings.reduce(set, text);
  await replace(target, changed.endsWith("\n") ? changed : `${changed}\n`);
}

/** Whether the value at a place holds another place, or is it. */
const isAround = (place: readonly (string | number)[], other: readonly string[]): boolean =>
  place.every((key, at) => key === other[at]);

function set(text: string, { path, value }: Setting): string {
  if (value === undefined && writtenAt(parseConfigFile("", text), path) === undefined) return text;
  return applyEdits(text, modify(text, [...path], value, { formattingOptions: format }));
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return (await readRegularFile(path)).toString("utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    if (error instanceof UserError) throw error;
    throw new UserError(`${path} cannot be read: ${codeOf(error)}.`, { cause: error });
  }
}

/** A new file is this person's alone; another keeps its rights. */
async function replace(path: string, text: string): Promise<void> {
  const mode = (await stat(path).catch(() => undefined))?.mode ?? 0o600;
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    await makeFolder(dirname(path), 0o700);
    await writeFile(temporary, text, { mode, flush: true, flag: "wx" });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
