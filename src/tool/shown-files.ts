import { resolve } from "node:path";
import { codeOf, UserError } from "../base/errors.ts";
import { isBelow } from "../base/files/paths.ts";
import type { ShownText } from "../shell/facts.ts";
import { sha256 } from "../base/text/hash.ts";
import { withFileAt } from "../workspace/files/files.ts";
import type { SeenFiles } from "./seen-files.ts";
import { decodeText, editLimitBytes } from "./text-file.ts";

/** Maximum number of files that are read to note one result, and their total size. */
const fileLimit = 50;
const sizeLimitBytes = 4 * editLimitBytes;

/** The output of a command that succeeded, if it was shown whole. */
interface CommandOutput {
  readonly text: string;
  /** When the command began, in milliseconds since the epoch. */
  readonly start: number;
}

/** Notes the files that a command has shown, except those that have changed since it began. */
export async function noteShownText(
  seen: SeenFiles,
  shown: readonly ShownText[],
  { text, start }: CommandOutput,
): Promise<void> {
  if (text.trim() === "") return;
  const files = new FileReader();
  const note = async (path: string, isWhole: boolean) => {
    const file = await files.read(path);
    if (file === undefined || file.changedMs > start) return;
    if (isWhole) seen.set(path, sha256(file.bytes));
    else seen.setPart(path, sha256(file.bytes));
  };
  const searched = shown.filter(({ extent }) => extent === "matches");
  const alone = searched.flatMap(({ path, isAlone }) => (isAlone === true ? [path] : []));
  for (const { path, extent } of shown) if (extent !== "matches") await note(path, extent === "whole");
  for (const path of new Set([...alone, ...findNamedFiles(text, searched)])) await note(path, false);
}

/** Notes the files whose lines a search has shown, except those that do not have them any more. */
export async function noteFoundLines(
  seen: SeenFiles,
  matches: readonly { path: string; line: number; text: string }[],
): Promise<void> {
  const files = new FileReader();
  for (const [path, found] of Map.groupBy(matches, (match) => match.path)) {
    const file = await files.read(path);
    if (file === undefined) continue;
    const lines = decodeText(file.bytes)?.text.split(/\r?\n/);
    // Long lines are found truncated.
    if (found.every(({ line, text }) => lines?.[line - 1]?.startsWith(text) === true))
      seen.setPart(path, sha256(file.bytes));
  }
}

/** Returns the paths with which lines of the output begin, as in `src/a.ts:12:text`; not all of them are files. */
function findNamedFiles(text: string, searched: readonly ShownText[]): Set<string> {
  const found = new Set<string>();
  for (const line of searched.length === 0 ? [] : text.split("\n")) {
    const names = [/^(.+?)[:-]\d+[:-]/, /^(.+?):/].flatMap((form) => form.exec(line)?.[1] ?? []);
    for (const { path, base } of searched)
      for (const file of names.map((name) => resolve(base, name))) if (isBelow(file, path)) found.add(file);
  }
  return found;
}

interface FileOnDisk {
  readonly bytes: Buffer;
  /** When content or attributes changed, in milliseconds since the epoch. */
  readonly changedMs: number;
}

/** Reads files from the disk, which is what searches and commands see, up to the limits. */
class FileReader {
  #filesLeft = fileLimit;
  #bytesLeft = sizeLimitBytes;

  /** Returns undefined for what is not a readable file of a moderate size. */
  async read(path: string): Promise<FileOnDisk | undefined> {
    if (this.#filesLeft === 0) return undefined;
    this.#filesLeft--;
    try {
      return await withFileAt(path, async (file) => {
        const stats = await file.stat();
        if (!stats.isFile() || stats.size > Math.min(editLimitBytes, this.#bytesLeft)) return undefined;
        this.#bytesLeft -= stats.size;
        return { bytes: await file.readFile(), changedMs: stats.ctimeMs };
      });
    } catch (error) {
      // Gone, or replaced by a link: it counts as not seen.
      if (error instanceof UserError || codeOf(error) !== undefined) return undefined;
      throw error;
    }
  }
}
