import { realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path";
import { isBelow } from "../base/files/paths.ts";
import { isMissing, messageOf } from "../base/errors.ts";
import { statOrUndefined } from "../base/files/file-stat.ts";
import { openRegularFile } from "../base/files/regular-file.ts";
import { isSecretFile } from "../permission/secret-file.ts";
import type { FetchedTexts } from "./fetched-texts.ts";
import { findFiles } from "./file-patterns.ts";

/** Names looked for in each folder; the first that is there counts. */
const NAMES = ["AGENTS.md", "CLAUDE.md"] as const;

export const FILE_LIMIT_BYTES = 32 * 1024;
export const TOTAL_LIMIT_BYTES = 100 * 1024;
export const FILES_LIMIT = 100;

/** What a file tells agents about the project. */
export interface Instruction {
  /** Absolute real path, or the URL. */
  path: string;
  /** Ends with a note where it was cut. */
  text: string;
}

export interface InstructionSources {
  readonly cwd: string;
  /** Root of the worktree, or `cwd` where there is none. */
  readonly root: string;
  readonly additionalDirectories?: readonly string[];
  /** Of the global configuration folders the first that has instructions counts. */
  readonly configFolders: readonly string[];
  readonly home: string;
  /** Further paths and globs, absolute, from `~/`, or relative to `cwd` or a folder above it up to the root. */
  readonly configured?: readonly string[];
  /** What stands at configured URLs. */
  readonly fetched: FetchedTexts;
}

export interface LoadedInstructions {
  /** General before special: global, root down to cwd, additional directories, configured. */
  instructions: Instruction[];
  /** What was left out and why, for the person. */
  notes: string[];
}

/** Reads every instruction file that holds for the whole session, each once. Never throws for what it finds on disk. */
export async function loadInstructions(sources: InstructionSources): Promise<LoadedInstructions> {
  const { cwd, additionalDirectories = [] } = sources;
  const root = isBelow(cwd, sources.root) ? sources.root : cwd;
  const collection = new Collection();
  await addGlobal(collection, sources);
  for (const folder of foldersDownTo(cwd, root)) await addFolder(collection, folder, root);
  for (const folder of additionalDirectories) await addFolder(collection, folder, folder);
  await addConfigured(collection, { ...sources, root });
  return { instructions: collection.instructions, notes: collection.notes };
}

/**
 * The instruction files between a file and the session's folder, outermost first. `already` holds the real paths that
 * the model has seen; what is returned is added to it.
 */
export async function nestedInstructions(
  path: string,
  context: { cwd: string; roots: readonly string[]; already: Set<string> },
): Promise<LoadedInstructions> {
  const root = [context.cwd, ...context.roots].find((folder) => isBelow(path, folder));
  if (root === undefined) return { instructions: [], notes: [] };
  const collection = new Collection(context.already);
  // Who reads one has it before them.
  if (NAMES.some((name) => name === basename(path))) context.already.add(path);
  for (const folder of foldersDownTo(dirname(path), root)) {
    if (folder !== context.cwd) await addFolder(collection, folder, root);
  }
  return { instructions: collection.instructions, notes: collection.notes };
}

/** Gathers files once each within the limits. */
class Collection {
  readonly instructions: Instruction[] = [];
  readonly notes: string[] = [];
  readonly #seen: Set<string>;
  #freeBytes = TOTAL_LIMIT_BYTES;
  #isFull = false;

  constructor(seen: Set<string> = new Set()) {
    this.#seen = seen;
  }

  /** Whether the file is there; adds it if it is new. With `within`, a link that leads out of that folder is left out. */
  async add(path: string, within?: string): Promise<boolean> {
    try {
      if (statOrUndefined(path) === undefined) return false;
      const real = await realpath(path);
      if (within !== undefined && !isBelow(real, await realpath(within))) {
        this.notes.push(`${path} links to a file outside of ${within} and was left out`);
        return true;
      }
      if (within !== undefined && isSecretFile(real)) {
        this.notes.push(`${path} is a file of secrets and was left out`);
        return true;
      }
      await this.#addReal(real);
      return true;
    } catch (thrown) {
      if (isMissing(thrown)) return false;
      this.notes.push(`${path} cannot be read: ${messageOf(thrown)}`);
      return true;
    }
  }

  /** What stands at a URL, where it could be fetched. */
  async addFetched(url: string, fetched: FetchedTexts): Promise<void> {
    const page = await fetched.get(url);
    if ("problem" in page) this.notes.push(`${url} was left out: ${page.problem}`);
    else await this.#addNew(url, async (limit) => startOf(url, page.text, limit));
  }

  #addReal(path: string): Promise<void> {
    return this.#addNew(path, (limit) => readStart(path, limit));
  }

  async #addNew(path: string, read: (limit: number) => Promise<Start>): Promise<void> {
    if (this.#isFull || this.#seen.has(path)) return;
    if (this.instructions.length >= FILES_LIMIT) {
      this.#isFull = true;
      this.notes.push(
        `only ${FILES_LIMIT} instruction files are read; ${path} and all after it were left out`,
      );
      return;
    }
    const limit = Math.min(FILE_LIMIT_BYTES, this.#freeBytes);
    // Noted before it is read: another file of its folder may be read at the same time.
    this.#seen.add(path);
    const { text, size } = await read(limit).catch((error: unknown) => {
      this.#seen.delete(path);
      throw error;
    });
    this.#freeBytes -= Math.min(size, limit);
    if (text.trim() === "") return;
    this.instructions.push({ path, text });
    if (size > limit) this.notes.push(`${path} was cut after ${limit} of its ${size} bytes`);
  }
}

async function addGlobal(collection: Collection, { configFolders, home }: InstructionSources): Promise<void> {
  const places = [
    ...configFolders.map((folder) => join(folder, "AGENTS.md")),
    join(home, ".claude", "CLAUDE.md"),
  ];
  for (const path of places) {
    if (await collection.add(path)) return;
  }
}

async function addFolder(collection: Collection, folder: string, within: string): Promise<void> {
  for (const name of NAMES) {
    if (await collection.add(join(folder, name), within)) return;
  }
}

async function addConfigured(collection: Collection, sources: InstructionSources): Promise<void> {
  const { configured = [], fetched } = sources;
  // All at once: together they take no longer than the slowest.
  fetched.begin(configured.filter(isUrl));
  for (const entry of configured) {
    if (isUrl(entry)) {
      await collection.addFetched(entry, fetched);
      continue;
    }
    const { paths, notes } = await findFiles(entry, {
      home: sources.home,
      folders: foldersDownTo(sources.cwd, sources.root),
    });
    collection.notes.push(...notes);
    const isRelative = !isAbsolute(entry) && !entry.startsWith("~/");
    for (const path of paths) {
      const within = isRelative && isBelow(path, sources.root) ? sources.root : undefined;
      await collection.add(path, within);
    }
  }
}

function isUrl(entry: string): boolean {
  return /^https?:\/\//i.test(entry);
}

/** The beginning of an instruction, with a note where it was cut, and the bytes of the whole. */
interface Start {
  readonly text: string;
  readonly size: number;
}

function startOf(url: string, text: string, limit: number): Start {
  const bytes = Buffer.from(text);
  if (bytes.byteLength <= limit) return { text, size: bytes.byteLength };
  const start = new TextDecoder().decode(bytes.subarray(0, limit), { stream: true });
  return { text: start + cutNote(url, limit, bytes.byteLength), size: bytes.byteLength };
}

/** At most `limit` bytes of the file, with a note at the end where there are more. */
async function readStart(path: string, limit: number): Promise<Start> {
  // Asked before it is opened: a pipe would wait for its writer.
  const stats = await stat(path);
  if (!stats.isFile()) throw new Error("it is not a file");
  const isLonger = stats.size > limit;
  const file = await openRegularFile(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(limit), 0, limit, 0);
    const text = new TextDecoder().decode(buffer.subarray(0, bytesRead), { stream: isLonger });
    return { text: isLonger ? text + cutNote(path, limit, stats.size) : text, size: stats.size };
  } finally {
    await file.close();
  }
}

function cutNote(path: string, limit: number, size: number): string {
  return `\n[Cut after ${limit} of ${size} bytes. Read ${path} for the rest.]`;
}

/** From the root down to a folder in it, both included. */
function foldersDownTo(folder: string, root: string): string[] {
  const steps = relative(root, folder).split(sep).filter(Boolean);
  return [root, ...steps.map((_, index) => join(root, ...steps.slice(0, index + 1)))];
}
