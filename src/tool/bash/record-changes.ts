import { resolve } from "node:path";
import { messageOf } from "../../base/errors.ts";
import type { FileChange } from "../../message/part.ts";
import { evaluate } from "../../permission/judge.ts";
import { readingCommandRules } from "../../permission/default-rules.ts";
import type { PermissionRequest } from "../../permission/rule.ts";
import type { ChangedFile, CommandChanges, NamedPath } from "../../workspace/changes/command-changes.ts";
import { type FileVersion, hasOtherMode } from "../../workspace/changes/file-state.ts";
import { sha256 } from "../../base/text/hash.ts";
import type { AuthorChanges } from "../../workspace/recent/recent-changes.ts";
import type { Snapshots } from "../../workspace/files/snapshot.ts";
import { compareTexts } from "../diff.ts";
import { decodeText } from "../text-file.ts";

/** Longer texts are not compared to count their changed lines. */
const comparedBytesLimit = 256 * 1024;
/** Time to count changed lines, for all files of a command. */
const countTimeMs = 300;
/** Contents that are stored at the same time. */
const storedAtOnce = 8;

const readers = new Set(["read", "external_directory"]);

/** Whether a command that needs these permissions is known to change no file. */
export function changesNoFiles(requests: readonly PermissionRequest[]): boolean {
  const effects = requests.filter(({ permission }) => !readers.has(permission));
  return evaluate(effects, readingCommandRules()).action === "allow";
}

/** Returns what a command is known to write. */
export function listWrittenPaths(requests: readonly PermissionRequest[], cwd: string): NamedPath[] {
  return requests
    .filter(({ permission }) => permission === "edit")
    .flatMap(({ subjects }) => subjects)
    .filter(({ opaque }) => opaque === undefined)
    .map(({ text, glob = false, below = false }) => ({
      path: resolve(cwd, text),
      isGlob: glob,
      isBelow: below,
    }));
}

export interface RecordedChanges {
  readonly changes: readonly FileChange[];
  /** Changes that cannot be undone, for the user. */
  readonly notUndone: readonly string[];
}

/** Stores the contents of the changed files for undo and for the card of the call. Never rejects. */
export async function recordChanges(
  { files, notes }: CommandChanges,
  snapshots: Snapshots,
): Promise<RecordedChanges> {
  const recorder = new Recorder(snapshots);
  const changes: FileChange[] = [];
  for (let start = 0; start < files.length; start += storedAtOnce) {
    const some = files.slice(start, start + storedAtOnce);
    changes.push(...(await Promise.all(some.map((file) => recorder.record(file)))));
  }
  return { changes, notUndone: [...notes, ...recorder.problems] };
}

/** Omits files that another session changed since the start of the command to the content that they have. */
export async function omitOthersChanges(
  files: readonly ChangedFile[],
  recent: AuthorChanges,
  start: number,
): Promise<readonly ChangedFile[]> {
  if (files.length === 0) return files;
  const meanwhile = (await recent.list()).filter(({ time }) => time >= start);
  const others = new Map(meanwhile.map(({ path, after }) => [path, after]));
  return files.filter(({ path, after }) => {
    const left = others.get(path);
    if (after === null || left === null) return after !== left;
    return left === undefined || after.bytes === undefined || sha256(after.bytes) !== left;
  });
}

class Recorder {
  readonly #snapshots: Snapshots;
  readonly #countUntil = performance.now() + countTimeMs;
  readonly problems = new Set<string>();

  constructor(snapshots: Snapshots) {
    this.#snapshots = snapshots;
  }

  async record({ path, before, after }: ChangedFile): Promise<FileChange> {
    const hashes = { before: await this.#save(before), after: await this.#save(after) };
    const operation = before === null ? "add" : after === null ? "delete" : "update";
    const isTimely = performance.now() < this.#countUntil;
    const counts = isTimely ? countLines(before, after) : undefined;
    const { additions, deletions } = counts ?? { additions: 0, deletions: 0 };
    return { path, operation, ...hashes, additions, deletions, ...getMetadata(before, after) };
  }

  async #save(version: FileVersion | null): Promise<string | null | undefined> {
    if (version?.bytes === undefined) return version === null ? null : undefined;
    try {
      return await this.#snapshots.save(version.bytes, false);
    } catch (error) {
      this.problems.add(`contents could not be stored for undo: ${messageOf(error)}`);
      return undefined;
    }
  }
}

/** Returns undefined for files that are not text or too large. */
function countLines(before: FileVersion | null, after: FileVersion | null) {
  const [oldText, newText] = [getText(before), getText(after)];
  return oldText === undefined || newText === undefined ? undefined : compareTexts(oldText, newText ?? "");
}

function getText(version: FileVersion | null): string | null | undefined {
  if (version === null) return null;
  const { bytes } = version;
  return bytes === undefined || bytes.length > comparedBytesLimit ? undefined : decodeText(bytes)?.text;
}

/** Permission bits that need not be stored. */
const defaultMode = 0o644;

function getMetadata(before: FileVersion | null, after: FileVersion | null): Partial<FileChange> {
  const [oldMode, newMode] = [before?.mode ?? defaultMode, after?.mode ?? defaultMode];
  const mode = before === null ? newMode : oldMode;
  const isChanged = before !== null && after !== null && hasOtherMode(before, after);
  return {
    ...((isChanged || mode !== defaultMode) && { mode }),
    ...(isChanged && { newMode }),
    ...(before?.isLink && { wasLink: true }),
    ...(after?.isLink && { isLink: true }),
  };
}
