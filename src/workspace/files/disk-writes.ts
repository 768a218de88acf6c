import { errorFields } from "../../base/error-fields.ts";
import { constants, renameSync } from "node:fs";
import type { BigIntStats, Stats } from "node:fs";
import { access, lstat, readFile, rename, rm, stat } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { createSha256, randomUuid, sha256 } from "../../base/text/hash.ts";
import { once, sleep } from "../../base/async.ts";
import { codeOf, isMissing, messageOf, UserError } from "../../base/errors.ts";
import { retryInUse } from "../../base/files/retry-in-use.ts";
import { type Log, silentLog } from "../../base/log.ts";
import { linkSuffix, loadExchange, tryLink } from "./exchange.ts";
import { FileLocks, type UnfinishedWrite } from "./file-locks.ts";
import { fillAndSync, openForReading, StaleFile, temporaryName, withOpenFile } from "./files.ts";
import { withFolder } from "./held-folder.ts";

export interface DiskWritesOptions {
  /** Folder of the locks shared by processes; without it, processes are not synchronized. */
  lockFolder?: string;
  /** Stores contents that could be neither left in place nor restored, and returns their name. */
  keep?: (bytes: Buffer) => Promise<string | undefined>;
  log?: Log;
}

const defaultMode = 0o666;
const emptyHash = sha256(new Uint8Array());
/** Time to wait for the text of a save that emptied the file first. */
const saveInPlaceMs = 100;

/** Changes each file atomically. A concurrent save by another program is restored. */
export class DiskWrites {
  readonly #keepBytes: DiskWritesOptions["keep"];
  readonly #log: Log;
  readonly #locks: FileLocks;
  readonly #exchange = once(loadExchange);

  constructor({ lockFolder, keep, log = silentLog }: DiskWritesOptions) {
    this.#keepBytes = keep;
    this.#log = log;
    this.#locks = new FileLocks({ folder: lockFolder, log, recover: (write) => this.#cleanUp(write) });
  }

  lock<T>(paths: readonly string[], task: () => Promise<T>): Promise<T> {
    return this.#locks.run(paths, task);
  }

  recover(): Promise<void> {
    return this.#locks.recoverAll();
  }

  async write(
    path: string,
    bytes: Uint8Array,
    expected: string | null,
    newMode = defaultMode,
  ): Promise<{ hash: string }> {
    const hash = sha256(bytes);
    await this.#change(path, expected, async (change) => {
      const { target, temporary } = change;
      const old = expected === null ? newMode : await statWritable(target);
      await fillAndSync(temporary, typeof old === "number" ? old : old.mode, async (file) => {
        await this.#locks.recordInode(path, formatInode(await file.stat({ bigint: true })));
        await file.writeFile(bytes);
        if (typeof old !== "number") await keepOwnerAndMode(file, old);
      });
      assertExpected(path, await hashIfExists(target), expected);
      if (expected === null) create(path, change);
      else await this.#replace(path, change, expected, hash);
    });
    return { hash };
  }

  async remove(path: string, expected: string): Promise<void> {
    await this.#change(path, expected, async (change) => {
      const { target, temporary } = change;
      await retryInUse(() => renameSync(target, temporary));
      change.hasReplaced = true;
      const problem = await checkExpected(path, temporary, expected);
      if (problem === undefined) return;
      moveBack(temporary, target);
      throw problem;
    });
  }

  /** Runs the task with a path to the file and a temporary path next to it, which is removed afterwards. */
  async #change(
    path: string,
    expected: string | null,
    task: (change: Change) => Promise<void>,
  ): Promise<void> {
    await withFileFolder(path, expected, async (folder) => {
      const name = temporaryName();
      const temporary = join(folder, name);
      const change: Change = { target: join(folder, basename(path)), temporary, hasReplaced: false };
      await this.#locks.record({ path, temporary: join(dirname(path), name), expected });
      try {
        await task(change);
        await rm(temporary, { force: true });
      } catch (error) {
        await this.#clear(path, change);
        throw error;
      } finally {
        await this.#locks.forget(path);
      }
    });
  }

  /** Moves the temporary file into place, and reverts that if the replaced file was not the expected one. */
  async #replace(path: string, change: Change, expected: string, hash: string): Promise<void> {
    const { target, temporary } = change;
    const exchange = await this.#exchange();
    if (!(await retryInUse(() => exchange(target, temporary)))) return;
    change.hasReplaced = true;
    let problem = await checkExpected(path, temporary, expected);
    if (problem === undefined && expected === emptyHash) {
      // An editor that saves in place empties the file first; its text may still be on the way.
      await sleep(saveInPlaceMs);
      problem = await checkExpected(path, temporary, expected);
    }
    if (problem === undefined) return;
    await retryInUse(() => exchange(target, temporary));
    const isOurs = (await hashFile(temporary)) === hash;
    // Another program has overwritten this write too: keep the later save.
    if (!isOurs && !(await isNewer(target, temporary))) await retryInUse(() => exchange(target, temporary));
    change.hasReplaced = !isOurs;
    throw problem;
  }

  /** Removes a temporary file after a failure, unless it holds the only copy of another program's save. */
  async #clear(path: string, { target, temporary, hasReplaced }: Change): Promise<void> {
    const inode = await getInode(temporary);
    if (inode === undefined) return;
    if (hasReplaced && inode !== (await getInode(target))) await this.#keep(path, temporary);
    else await rm(temporary, { force: true });
  }

  /** Preserves a save that was replaced concurrently: as a snapshot, or else as a file next to it. */
  async #keep(path: string, temporary: string): Promise<void> {
    const snapshot = await this.#snapshotOf(temporary);
    const name = `${basename(path)}.replaced-${randomUuid()}`;
    if (snapshot === undefined) await rename(temporary, join(dirname(temporary), name));
    else await rm(temporary, { force: true });
    const where = snapshot === undefined ? { name } : { snapshot };
    this.#log.warn("concurrent save preserved", { path, ...where });
  }

  async #snapshotOf(temporary: string): Promise<string | undefined> {
    try {
      return await this.#keepBytes?.(await readFile(temporary));
    } catch (error) {
      this.#log.warn("concurrent save not stored as snapshot", errorFields(error));
      return undefined;
    }
  }

  /** Removes the temporary files of a killed process, but no content saved by another program. */
  async #cleanUp({ path, temporary, expected, inode }: UnfinishedWrite): Promise<void> {
    await withFolder(dirname(path), { make: false }, async (folder) => {
      const inPlace = await getInode(join(folder, basename(path)));
      for (const name of [basename(temporary), `${basename(temporary)}${linkSuffix}`]) {
        const left = join(folder, name);
        const found = await getInode(left);
        if (found === undefined) continue;
        const isOurs = found === inode || found === inPlace || (await isDisposable(left, expected));
        if (isOurs) await rm(left, { force: true });
        else await this.#keep(path, left);
      }
    });
  }
}

/** Paths through the open folder. */
interface Change {
  readonly target: string;
  readonly temporary: string;
  /** Whether the temporary file holds the replaced content. */
  hasReplaced: boolean;
}

/** Creates the file by a link, which fails if the file exists by now; a rename would replace it. */
function create(path: string, { target, temporary }: Change): void {
  try {
    if (!tryLink(temporary, target)) renameSync(temporary, target);
  } catch (error) {
    if (codeOf(error) === "EEXIST") assertExpected(path, "", null);
    throw error;
  }
}

/** Returns why a file is not the expected one; undefined if it is. */
async function checkExpected(path: string, target: string, expected: string): Promise<Error | undefined> {
  try {
    assertExpected(path, await hashFile(target), expected);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(messageOf(error));
  }
}

/** Moves the file back, unless a new file exists at its path. */
function moveBack(temporary: string, target: string): void {
  try {
    if (!tryLink(temporary, target)) renameSync(temporary, target);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

async function isNewer(one: string, other: string): Promise<boolean> {
  const [first, second] = await Promise.all([one, other].map((path) => lstat(path, { bigint: true })));
  return first !== undefined && second !== undefined && first.mtimeNs > second.mtimeNs;
}

async function getInode(path: string): Promise<string | undefined> {
  try {
    return formatInode(await lstat(path, { bigint: true }));
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

const formatInode = ({ dev, ino }: BigIntStats): string => `${dev}:${ino}`;

/** Whether a temporary file with unknown inode can be deleted: it is empty or contains the replaced content. */
async function isDisposable(path: string, expected: string | null): Promise<boolean> {
  const hash = await hashFile(path);
  return hash === expected || hash === emptyHash;
}

async function keepOwnerAndMode(file: FileHandle, old: Stats): Promise<void> {
  const created = await file.stat();
  if (created.uid !== old.uid || created.gid !== old.gid) await restoreOwner(file, old);
  await file.chmod(old.mode & 0o7777);
}

/**
 * Only root may change the owner. For other users the file becomes theirs, as with editors that save by
 * renaming.
 */
async function restoreOwner(file: FileHandle, old: Stats): Promise<void> {
  try {
    await file.chown(old.uid, old.gid);
  } catch (error) {
    if (codeOf(error) !== "EPERM") throw error;
  }
}

/** Throws for a read-only file, which a rename would replace. */
async function statWritable(path: string): Promise<Stats> {
  await access(path, constants.W_OK);
  return stat(path);
}

/** Runs the task with a path through the open folder, after checking that the file is as expected. */
async function withFileFolder(
  path: string,
  expected: string | null,
  task: (folder: string) => Promise<void>,
): Promise<void> {
  try {
    await withFolder(dirname(path), { make: expected === null }, async (folder) => {
      assertExpected(path, await hashIfExists(join(folder, basename(path))), expected);
      await task(folder);
    });
  } catch (error) {
    if (codeOf(error) === "ELOOP") throw new UserError(`${path} is now a link. Use the path of its target.`);
    if (expected !== null && codeOf(error) === "ENOENT") assertExpected(path, null, expected);
    throw error;
  }
}

function assertExpected(path: string, hash: string | null, expected: string | null): void {
  if (hash === expected) return;
  if (expected === null) throw new StaleFile(`${path} exists already.`);
  throw new StaleFile(hash === null ? `${path} no longer exists.` : `${path} has changed in the meantime.`);
}

async function hashIfExists(path: string): Promise<string | null> {
  try {
    return await hashFile(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

async function hashFile(path: string): Promise<string> {
  return withOpenFile(path, openForReading | (constants.O_NOFOLLOW ?? 0), async (file) => {
    if (!(await file.stat()).isFile()) throw new UserError(`${path} is not a regular file.`);
    const hash = createSha256();
    for await (const chunk of file.readableWebStream({ autoClose: false })) hash.update(chunk);
    return hash.digest("hex");
  });
}
