import { realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path";
import { isBelow } from "../base/files/paths.ts";
import { isMissing, messageOf } from "../base/errors.ts";
import { statOrUndefined } from "../base/files/file-stat.ts";
import { openRegularFile } from "../base/files/regular-file.ts";
import { isSecretFile } from "../permission/secret-file.ts";
import type { FetchedTexts } from "./fetched-texts.ts";
import { findFiles } from "./file-patterns.ts";
import { findImports, importDepthLimit } from "./imports.ts";
import {
  appliesTo,
  describeRules,
  isRuleFile,
  listRuleFiles,
  parseRuleFile,
  type RuleFile,
} from "./rule-files.ts";

/** File names in order of preference; the first that exists is used. */
const NAMES = [
  "AGENTS.md",
  "CLAUDE.md",
  join(".github", "copilot-instructions.md"),
  ".cursorrules",
  ".windsurfrules",
] as const;
/** The only file with imports. */
const IMPORTING_NAME = "CLAUDE.md";

export const FILE_LIMIT_BYTES = 32 * 1024;
export const TOTAL_LIMIT_BYTES = 100 * 1024;
export const FILES_LIMIT = 100;

/** An instruction file for the model. */
export interface Instruction {
  /** Real path, or URL. */
  path: string;
  /** Ends with a note if it was truncated. */
  text: string;
}

export interface InstructionSources {
  readonly cwd: string;
  /** Root of the worktree, or `cwd`. */
  readonly root: string;
  readonly additionalDirectories?: readonly string[];
  /** Global configuration folders; the first with instructions is used. */
  readonly configFolders: readonly string[];
  readonly home: string;
  /** Further paths and globs: absolute, from `~/`, or relative to `cwd` or one of its parents up to the root. */
  readonly configured?: readonly string[];
  /** Contents of configured URLs. */
  readonly fetched: FetchedTexts;
}

export interface LoadedInstructions {
  /** From general to specific: global, root down to `cwd`, additional directories, configured. */
  instructions: Instruction[];
  /** Skipped files with the reason, for the user. */
  notes: string[];
}

/** Loads every instruction file of a session once. Never throws for unreadable files. */
export async function loadInstructions(sources: InstructionSources): Promise<LoadedInstructions> {
  const { cwd, additionalDirectories = [] } = sources;
  const root = isBelow(cwd, sources.root) ? sources.root : cwd;
  const collection = new InstructionCollector(sources.home);
  await addGlobal(collection, sources);
  for (const folder of listFoldersDownTo(cwd, root)) await addFolder(collection, folder, root);
  for (const folder of additionalDirectories) await addFolder(collection, folder, folder);
  for (const folder of listFoldersDownTo(cwd, root)) await addRules(collection, folder, root);
  for (const folder of additionalDirectories) await addRules(collection, folder, folder);
  await addConfigured(collection, { ...sources, root });
  return { instructions: collection.instructions, notes: collection.notes };
}

/**
 * Instruction files between a file and the session's folder, outermost first. `already` contains the real
 * paths that the model has seen; returned files are added to it.
 */
export async function loadNestedInstructions(
  path: string,
  context: {
    cwd: string;
    roots: readonly string[];
    worktree?: string | undefined;
    home: string;
    already: Set<string>;
  },
): Promise<LoadedInstructions> {
  const { cwd, roots, worktree = cwd, home, already } = context;
  const root = [cwd, ...roots].find((folder) => isBelow(path, folder));
  if (root === undefined) return { instructions: [], notes: [] };
  const collection = new InstructionCollector(home, already);
  // Reading an instruction file shows it to the model.
  if (NAMES.some((name) => path.endsWith(`${sep}${name}`)) || isRuleFile(path)) already.add(path);
  for (const folder of listFoldersDownTo(dirname(path), root)) {
    if (folder !== cwd) await addFolder(collection, folder, root);
  }
  const outer = isBelow(root, worktree) ? worktree : root;
  for (const folder of listFoldersDownTo(dirname(path), outer))
    await addRulesFor(collection, path, folder, outer);
  return { instructions: collection.instructions, notes: collection.notes };
}

/** Collects files without duplicates, within the limits. */
class InstructionCollector {
  readonly instructions: Instruction[] = [];
  readonly notes: string[] = [];
  readonly #seen: Set<string>;
  readonly #home: string;
  #freeBytes = TOTAL_LIMIT_BYTES;
  #isFull = false;

  constructor(home: string, seen: Set<string> = new Set()) {
    this.#home = home;
    this.#seen = seen;
  }

  /**
   * Adds a file unless it was added before, and what it imports; returns whether it exists. With `within`, ignores
   * links that lead out of it.
   */
  add(path: string, within?: string): Promise<boolean> {
    return this.#addFile(path, within, basename(path) === IMPORTING_NAME ? importDepthLimit : 0);
  }

  /** Parses a rule file; undefined if it cannot be used. */
  async readRule(path: string, within: string): Promise<RuleFile | undefined> {
    let rule: RuleFile | undefined;
    await this.#open(path, within, async (real) => {
      const { text, size } = await readTruncated(real, FILE_LIMIT_BYTES);
      if (size > FILE_LIMIT_BYTES && !this.#seen.has(real))
        this.notes.push(`${path} was truncated to ${FILE_LIMIT_BYTES} of its ${size} bytes`);
      rule = parseRuleFile(real, text);
    });
    return rule;
  }

  /** Adds a text that is not the content of a whole file. */
  addText(path: string, text: string): Promise<void> {
    return this.#addNew(path, async (limit) => truncateText(path, text, limit));
  }

  async #addFile(path: string, within: string | undefined, depth: number): Promise<boolean> {
    return this.#open(path, within, async (real) => {
      const isAdded = await this.#addReal(real);
      if (isAdded && depth > 0) await this.#addImports(real, within, depth - 1);
    });
  }

  /** Adds the files that the newest one imports. A project's file may import from the project and the user's folder. */
  async #addImports(real: string, within: string | undefined, depth: number): Promise<void> {
    const text = this.instructions.find(({ path }) => path === real)?.text ?? "";
    const own = join(this.#home, ".claude");
    for (const { path, written, isCertain } of findImports(text, real, this.#home)) {
      const isInside =
        within === undefined || isBelow(path, within) || (isBelow(path, own) && path.endsWith(".md"));
      const confinement = within !== undefined && !isBelow(path, within) ? own : within;
      if (!isInside) {
        if (statOrUndefined(path)?.isFile() === true)
          this.notes.push(`${real} imports ${written}, which is outside of ${within} and was ignored`);
      } else if (
        statOrUndefined(path)?.isDirectory() === true ||
        !(await this.#addFile(path, confinement, depth))
      ) {
        if (isCertain) this.notes.push(`${real} imports ${written}, which is not a file`);
      }
    }
  }

  /** Calls back with the real path of a file. Returns whether it exists; notes why it is ignored. */
  async #open(
    path: string,
    within: string | undefined,
    use: (real: string) => Promise<void>,
  ): Promise<boolean> {
    try {
      if (statOrUndefined(path) === undefined) return false;
      const real = await realpath(path);
      if (within !== undefined && !isBelow(real, await realpath(within)))
        this.notes.push(`${path} links to a file outside of ${within} and was ignored`);
      else if (within !== undefined && isSecretFile(real))
        this.notes.push(`${path} is a secret file and was ignored`);
      else await use(real);
      return true;
    } catch (thrown) {
      if (isMissing(thrown)) return false;
      this.notes.push(`${path} cannot be read: ${messageOf(thrown)}`);
      return true;
    }
  }

  /** Adds the content of a URL if it was fetched. */
  async addFetched(url: string, fetched: FetchedTexts): Promise<void> {
    const page = await fetched.get(url);
    if ("problem" in page) this.notes.push(`${url} was ignored: ${page.problem}`);
    else await this.#addNew(url, async (limit) => truncateText(url, page.text, limit));
  }

  /** Returns whether it was added. */
  async #addReal(path: string): Promise<boolean> {
    const before = this.instructions.length;
    await this.#addNew(path, (limit) => readTruncated(path, limit));
    return this.instructions.length > before;
  }

  async #addNew(path: string, read: (limit: number) => Promise<TruncatedText>): Promise<void> {
    if (this.#isFull || this.#seen.has(path)) return;
    if (this.instructions.length >= FILES_LIMIT) {
      this.#isFull = true;
      this.notes.push(`only ${FILES_LIMIT} instruction files are read; ${path} and later ones were ignored`);
      return;
    }
    const limit = Math.min(FILE_LIMIT_BYTES, this.#freeBytes);
    // Add before reading, because another file of the folder may be read concurrently.
    this.#seen.add(path);
    const { text, size } = await read(limit).catch((error: unknown) => {
      this.#seen.delete(path);
      throw error;
    });
    this.#freeBytes -= Math.min(size, limit);
    if (text.trim() === "") return;
    this.instructions.push({ path, text });
    if (size > limit) this.notes.push(`${path} was truncated to ${limit} of its ${size} bytes`);
  }
}

async function addGlobal(
  collection: InstructionCollector,
  { configFolders, home }: InstructionSources,
): Promise<void> {
  const candidates = [
    ...configFolders.map((folder) => join(folder, "AGENTS.md")),
    join(home, ".claude", "CLAUDE.md"),
  ];
  for (const path of candidates) {
    if (await collection.add(path)) return;
  }
}

async function addFolder(collection: InstructionCollector, folder: string, within: string): Promise<void> {
  for (const name of NAMES) {
    if (await collection.add(join(folder, name), within)) return;
  }
}

/** Adds the rules that always apply, and a list of the others. */
async function addRules(collection: InstructionCollector, folder: string, within: string): Promise<void> {
  const rules = await readRules(collection, folder, within);
  for (const rule of rules) if (rule.use === "always") await collection.addText(rule.path, rule.text);
  const list = describeRules(rules);
  if (list !== undefined) await collection.addText(join(folder, "rules"), list);
}

/** Adds the rules that apply to a file. */
async function addRulesFor(
  collection: InstructionCollector,
  file: string,
  folder: string,
  within: string,
): Promise<void> {
  for (const rule of await readRules(collection, folder, within)) {
    const isUsed = rule.use === "always" || (rule.use === "files" && appliesTo(rule, folder, file));
    if (isUsed) await collection.addText(rule.path, rule.text);
  }
}

async function readRules(
  collection: InstructionCollector,
  folder: string,
  within: string,
): Promise<RuleFile[]> {
  const paths = await listRuleFiles(folder);
  const rules = await Promise.all(
    paths.slice(0, FILES_LIMIT).map((path) => collection.readRule(path, within)),
  );
  return rules.filter((rule) => rule !== undefined);
}

async function addConfigured(collection: InstructionCollector, sources: InstructionSources): Promise<void> {
  const { configured = [], fetched } = sources;
  // Fetch all in parallel.
  fetched.begin(configured.filter(isUrl));
  for (const entry of configured) {
    if (isUrl(entry)) {
      await collection.addFetched(entry, fetched);
      continue;
    }
    const { paths, notes } = await findFiles(entry, {
      home: sources.home,
      folders: listFoldersDownTo(sources.cwd, sources.root),
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

/** Start of an instruction file, with a note if it was truncated, and its full size in bytes. */
interface TruncatedText {
  readonly text: string;
  readonly size: number;
}

function truncateText(url: string, text: string, limit: number): TruncatedText {
  const bytes = Buffer.from(text);
  if (bytes.byteLength <= limit) return { text, size: bytes.byteLength };
  const start = new TextDecoder().decode(bytes.subarray(0, limit), { stream: true });
  return { text: start + createTruncationNote(url, limit, bytes.byteLength), size: bytes.byteLength };
}

/** Reads at most `limit` bytes, and appends a note if there are more. */
async function readTruncated(path: string, limit: number): Promise<TruncatedText> {
  // Check first: opening a pipe would block.
  const stats = await stat(path);
  if (!stats.isFile()) throw new Error("it is not a file");
  const isLonger = stats.size > limit;
  const file = await openRegularFile(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(limit), 0, limit, 0);
    const text = new TextDecoder().decode(buffer.subarray(0, bytesRead), { stream: isLonger });
    return { text: isLonger ? text + createTruncationNote(path, limit, stats.size) : text, size: stats.size };
  } finally {
    await file.close();
  }
}

function createTruncationNote(path: string, limit: number, size: number): string {
  return `\n[Cut after ${limit} of ${size} bytes. Read ${path} for the rest.]`;
}

/** Folders from the root down to `folder`, both included. */
function listFoldersDownTo(folder: string, root: string): string[] {
  const steps = relative(root, folder).split(sep).filter(Boolean);
  return [root, ...steps.map((_, index) => join(root, ...steps.slice(0, index + 1)))];
}
