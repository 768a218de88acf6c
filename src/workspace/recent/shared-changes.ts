import { readdirSync } from "node:fs";
import { appendFile, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { Serial } from "../../base/async.ts";
import { errorFields } from "../../base/error-fields.ts";
import { statOrUndefined } from "../../base/files/file-stat.ts";
import { makeFolder } from "../../base/files/make-folder.ts";
import { randomUuid } from "../../base/text/hash.ts";
import { writeAtomically } from "../files/files.ts";
import {
  type Author,
  type AuthorChanges,
  type RecentChange,
  type RecentChanges,
  type RecentChangesOptions,
  recentMs,
} from "./recent-changes.ts";

/** Maximum number of changes per process; older ones are forgotten. */
const changeLimit = 500;
/** The process's file is rewritten after this many lines. */
const lineLimit = 2 * changeLimit;
/** Maximum number of changes that one call notes. */
const notedAtOnce = 200;
/** Larger files of other processes are not read. */
const fileLimitBytes = 2 * 1024 * 1024;
/** Maximum number of other processes whose changes are read; the latest to write come first. */
const processLimit = 50;
/** Files of ended processes are deleted after this time. */
const removeAfterMs = 24 * 3_600_000;
/** Characters of a stored title. */
const titleLimit = 80;

const ending = ".jsonl";

const changeSchema = z.object({
  path: z.string(),
  after: z.string().nullable().optional(),
  time: z.number(),
  author: z.object({ id: z.string(), title: z.string().optional(), isTask: z.boolean() }),
});

interface CachedFile {
  readonly stamp: string;
  readonly changes: readonly RecentChange[];
}

/** Changes of this process in memory, and of the others from their files. A failing disk is only logged. */
export class SharedChanges implements RecentChanges {
  readonly #options: RecentChangesOptions;
  readonly #name = `${process.pid}-${randomUuid()}${ending}`;
  readonly #writing = new Serial();
  /** Oldest first. */
  #own: RecentChange[] = [];
  #lines = 0;
  #isFolderReady = false;
  readonly #cached = new Map<string, CachedFile>();

  constructor(options: RecentChangesOptions) {
    this.#options = options;
  }

  openFor(author: () => Author): AuthorChanges {
    return new SessionChanges(this, author);
  }

  async note(changes: readonly Pick<RecentChange, "path" | "after">[], author: Author): Promise<void> {
    const time = Date.now();
    const title = author.title?.slice(0, titleLimit).toWellFormed();
    const noted = changes
      .slice(0, notedAtOnce)
      .map(({ path, after }): RecentChange => ({ path, after, time, author: { ...author, title } }));
    const paths = new Set(noted.map(({ path }) => path));
    const others = this.#own.filter((one) => one.author.id !== author.id || !paths.has(one.path));
    this.#own = [...others, ...noted].slice(-changeLimit);
    if (this.#options.isShared) await this.#writing.run(() => this.#write(noted));
  }

  /** Returns the changes of the last minutes, newest first. */
  async list(): Promise<RecentChange[]> {
    const since = Date.now() - recentMs;
    const all = [...this.#own, ...(await this.#readOthers(since))];
    return all.filter(({ time }) => time >= since).sort((one, other) => other.time - one.time);
  }

  async #write(changes: readonly RecentChange[]): Promise<void> {
    const path = join(this.#options.folder, this.#name);
    try {
      if (!this.#isFolderReady) await this.#prepareFolder();
      this.#lines += changes.length;
      if (this.#lines <= lineLimit) {
        await appendFile(path, toLines(changes), { mode: 0o600 });
        return;
      }
      const since = Date.now() - recentMs;
      this.#own = this.#own.filter(({ time }) => time >= since);
      this.#lines = this.#own.length;
      await writeAtomically(path, Buffer.from(toLines(this.#own)), 0o600, false);
    } catch (error) {
      this.#warn("recent changes not shared", error);
    }
  }

  async #prepareFolder(): Promise<void> {
    const { folder } = this.#options;
    await makeFolder(folder, 0o700);
    this.#isFolderReady = true;
    for (const { path, modified } of this.#listFiles())
      if (modified < Date.now() - removeAfterMs) await rm(path, { force: true });
  }

  async #readOthers(since: number): Promise<RecentChange[]> {
    try {
      const files = this.#listFiles()
        .filter(({ modified, size }) => modified >= since && size <= fileLimitBytes)
        .sort((one, other) => other.modified - one.modified)
        .slice(0, processLimit);
      const paths = new Set(files.map(({ path }) => path));
      for (const path of this.#cached.keys()) if (!paths.has(path)) this.#cached.delete(path);
      return (await Promise.all(files.map((file) => this.#readFile(file)))).flat();
    } catch (error) {
      this.#warn("recent changes of other processes not read", error);
      return [];
    }
  }

  async #readFile({ path, modified, size }: SharedFile): Promise<readonly RecentChange[]> {
    const stamp = `${modified} ${size}`;
    const cached = this.#cached.get(path);
    if (cached?.stamp === stamp) return cached.changes;
    const changes = parseLines(await readFile(path, "utf8"));
    this.#cached.set(path, { stamp, changes });
    return changes;
  }

  /** Lists the files of other processes. Synchronous: each prompt waits for it, and the thread pool takes longer. */
  #listFiles(): SharedFile[] {
    const { folder } = this.#options;
    if (statOrUndefined(folder) === undefined) return [];
    const others = readdirSync(folder).filter((name) => name.endsWith(ending) && name !== this.#name);
    return others.flatMap((name) => {
      const path = join(folder, name);
      // Another process may have removed it in the meantime.
      const stat = statOrUndefined(path);
      return stat === undefined ? [] : [{ path, modified: stat.mtimeMs, size: stat.size }];
    });
  }

  #warn(message: string, error: unknown): void {
    this.#options.log.warn(message, errorFields(error));
  }
}

/** The changes as one session makes and sees them. */
class SessionChanges implements AuthorChanges {
  readonly #all: SharedChanges;
  readonly #author: () => Author;
  readonly #startedAt = Date.now();
  /** Times of the changes that were returned as news, by author and path. */
  #returned = new Map<string, number>();

  constructor(all: SharedChanges, author: () => Author) {
    this.#all = all;
    this.#author = author;
  }

  async note(changes: readonly Pick<RecentChange, "path" | "after">[]): Promise<void> {
    if (changes.length > 0) await this.#all.note(changes, this.#author());
  }

  async list(): Promise<RecentChange[]> {
    const { id } = this.#author();
    return (await this.#all.list()).filter(({ author }) => author.id !== id);
  }

  async find(path: string): Promise<RecentChange | undefined> {
    return (await this.list()).find((change) => change.path === path);
  }

  async takeNews(): Promise<RecentChange[]> {
    const others = (await this.list()).filter(({ time }) => time >= this.#startedAt);
    const news = others.filter((change) => this.#returned.get(keyOf(change)) !== change.time);
    this.#returned = new Map(others.map((change) => [keyOf(change), change.time]));
    return news;
  }
}

const keyOf = ({ author, path }: RecentChange): string => `${author.id} ${path}`;

interface SharedFile {
  readonly path: string;
  readonly modified: number;
  readonly size: number;
}

const toLines = (changes: readonly RecentChange[]): string =>
  changes.map((change) => `${JSON.stringify(change)}\n`).join("");

/** Returns the newest change per author and path. Incomplete lines, as a killed process leaves them, are skipped. */
function parseLines(text: string): RecentChange[] {
  const newest = new Map<string, RecentChange>();
  for (const line of text.split("\n")) {
    const change = parseLine(line);
    if (change !== undefined) newest.set(`${change.author.id} ${change.path}`, change);
  }
  return [...newest.values()];
}

function parseLine(line: string): RecentChange | undefined {
  try {
    return line === "" ? undefined : changeSchema.parse(JSON.parse(line));
  } catch {
    return undefined;
  }
}
