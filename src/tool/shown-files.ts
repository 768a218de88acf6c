import { resolve } from "node:path";
import { codeOf, UserError } from "../base/errors.ts";
import { isBelow } from "../base/files/paths.ts";
import type { ShownText } from "../shell/facts.ts";
import { sha256 } from "../base/text/hash.ts";
import { timeStepMs, toState } from "../workspace/changes/file-state.ts";
import { withFileAt } from "../workspace/files/files.ts";
import type { SeenFiles } from "./seen-files.ts";
import { decodeText, editLimitBytes } from "./text-file.ts";

/** Maximum number and total size of the files that are read for one result. */
const fileLimit = 50;
const sizeLimitBytes = 4 * editLimitBytes;

/** The complete output of a successful command. */
interface CommandOutput {
  readonly text: string;
  /** Start of the command, in milliseconds since 1970. */
  readonly start: number;
}

/** Marks the files that a command printed as seen, unless they changed since its start. */
export async function noteShownText(
  seen: SeenFiles,
  shown: readonly ShownText[],
  { text, start }: CommandOutput,
): Promise<void> {
  if (text.trim() === "") return;
  const files = new FileReader();
  const note = async (path: string, isWhole: boolean) => {
    const file = await files.read(path);
    if (file === undefined || file.changedMs > start - timeStepMs) return;
    if (isWhole) seen.set(path, sha256(file.bytes));
    else seen.setPart(path, sha256(file.bytes));
  };
  const searched = shown.filter(({ extent }) => extent === "matches");
  const alone = searched.flatMap(({ path, isAlone }) => (isAlone === true ? [path] : []));
  for (const { path, extent } of shown) if (extent !== "matches") await note(path, extent === "whole");
  for (const path of new Set([...alone, ...findNamedFiles(text, searched)])) await note(path, false);
}

/** Marks the files whose lines a search printed as seen, unless the lines changed since then. */
export async function noteFoundLines(
  seen: SeenFiles,
  matches: readonly { path: string; line: number; text: string }[],
): Promise<void> {
  const files = new FileReader();
  const groups = Map.groupBy(matches, (match) => match.path);
  const note = async ([path, found]: [string, typeof matches]) => {
    const file = await files.read(path);
    if (file === undefined) return;
    const lines = decodeText(file.bytes)?.text.split(/\r?\n/);
    // Searches truncate long lines.
    if (found.every(({ line, text }) => lines?.[line - 1]?.startsWith(text) === true))
      seen.setPart(path, sha256(file.bytes));
  };
  await Promise.all([...groups].map(note));
}

/** Returns the paths at the starts of output lines, as in `src/a.ts:12:text`; some may not be files. */
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
  /** When content or attributes changed, in milliseconds since 1970. */
  readonly changedMs: number;
}

/** Reads files from the disk, as searches and commands do, up to the limits. */
class FileReader {
  #filesLeft = fileLimit;
  #bytesLeft = sizeLimitBytes;

  /** Returns undefined if the path is not a readable file, or the file is too large. */
  async read(path: string): Promise<FileOnDisk | undefined> {
    if (this.#filesLeft === 0) return undefined;
    this.#filesLeft--;
    try {
      return await withFileAt(path, async (file) => {
        const state = toState(await file.stat({ bigint: true }));
        if (state === undefined || state.size > Math.min(editLimitBytes, this.#bytesLeft)) return undefined;
        this.#bytesLeft -= state.size;
        return { bytes: await file.readFile(), changedMs: state.changed };
      });
    } catch (error) {
      // Gone, or replaced by a link: it counts as not seen.
      if (error instanceof UserError || codeOf(error) !== undefined) return undefined;
      throw error;
    }
  }
}
