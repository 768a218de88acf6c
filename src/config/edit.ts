import { realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { applyEdits, modify } from "jsonc-parser";
import { randomUuid } from "../base/text/hash.ts";
import { codeOf, messageOf, UserError } from "../base/errors.ts";
import { makeFolder } from "../base/files/make-folder.ts";
import { retryInUse } from "../base/files/retry-in-use.ts";
import { readRegularFile } from "../base/files/regular-file.ts";
import { updateSharedFile } from "../storage/json/lock.ts";
import { parseConfigFile, listProblems, getSourceText } from "./files/config-file.ts";

/** A value to set at a path in a JSONC file; undefined removes it. */
export interface Setting {
  readonly path: readonly string[];
  readonly value: unknown;
}

const format = { insertSpaces: true, tabSize: 2, eol: "\n" };

/**
 * Sets values in a JSONC file and preserves everything else. Replaces the file atomically, or creates it.
 * `lockFolder` contains the locks shared by all processes.
 * Throws {@link UserError} if the file cannot be read or is not valid JSONC.
 */
export async function setInFile(
  path: string,
  settings: readonly Setting[],
  lockFolder: string,
): Promise<void> {
  // Dotfile managers use links: replace the target, not the link.
  const target = await realpath(path).catch(() => path);
  try {
    await updateSharedFile(target, lockFolder, () => changeFile(path, target, settings));
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`${path} cannot be written: ${messageOf(error)}.`, { cause: error });
  }
}

async function changeFile(path: string, target: string, settings: readonly Setting[]): Promise<void> {
  const before = await readIfExists(target);
  const text = before?.trim() ? before : "{}\n";
  const file = parseConfigFile(path, text);
  // The edit is ambiguous if a changed key is duplicated; duplicates elsewhere do not matter.
  const isTwice = settings.some(({ path }) => file.repeated.some((key) => isSameOrParent(key.path, path)));
  const [problem] = isTwice ? listProblems(file) : file.problems;
  if (problem !== undefined)
    throw new UserError(`${path}:${problem.line}:${problem.column}: ${problem.message}. Fix it first.`);
  const changed = settings.reduce(applySetting, text);
  await replaceFile(target, changed.endsWith("\n") ? changed : `${changed}\n`);
}

/** Whether `place` is `other` or one of its parents. */
const isSameOrParent = (location: readonly (string | number)[], other: readonly string[]): boolean =>
  location.every((key, at) => key === other[at]);

function applySetting(text: string, { path, value }: Setting): string {
  if (value === undefined && getSourceText(parseConfigFile("", text), path) === undefined) return text;
  return applyEdits(text, modify(text, [...path], value, { formattingOptions: format }));
}

async function readIfExists(path: string): Promise<string | undefined> {
  try {
    return (await readRegularFile(path)).toString("utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    if (error instanceof UserError) throw error;
    throw new UserError(`${path} cannot be read: ${codeOf(error)}.`, { cause: error });
  }
}

/** Replaces a file atomically. Keeps its mode; a new file is readable by the user only. */
async function replaceFile(path: string, text: string): Promise<void> {
  const mode = (await stat(path).catch(() => undefined))?.mode ?? 0o600;
  const temporary = `${path}.${randomUuid()}.tmp`;
  try {
    await makeFolder(dirname(path), 0o700);
    await writeFile(temporary, text, { mode, flush: true, flag: "wx" });
    await retryInUse(() => rename(temporary, path));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
