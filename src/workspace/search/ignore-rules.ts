import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import ignore, { type Ignore } from "ignore";
import { maxRuleBytes } from "./unusual-ignore-rules.ts";
import { findWorktree } from "../worktree.ts";

/** Ignore files by precedence, highest first; for each name, deeper folders come first. */
const KINDS = [".rgignore", ".ignore", ".gitignore", ".git/info/exclude"];
const isGitFile = (kind: string): boolean => kind.startsWith(".git");

interface RuleFile {
  kind: string;
  /** Folder that the patterns are relative to. */
  folder: string;
  text: string;
  rules: Ignore;
}

/** Rules of .gitignore and similar files as seen from one folder. Immutable; subfolders derive theirs. */
export class IgnoreRules {
  readonly #folder: string;
  /** Deepest folder first. */
  readonly #files: readonly RuleFile[];
  /** If so, a nested repository starts with new rules, as in git. */
  readonly #inGit: boolean;
  /** Names of the files that are read. */
  readonly #kinds: readonly string[];

  private constructor(
    folder: string,
    files: readonly RuleFile[],
    { inGit, kinds }: { readonly inGit: boolean; readonly kinds: readonly string[] },
  ) {
    this.#folder = folder;
    this.#files = files;
    this.#inGit = inGit;
    this.#kinds = kinds;
  }

  /** Rules of the parent folders: git's rules from the top of the worktree; outside git none. */
  static async above(folder: string): Promise<IgnoreRules> {
    return IgnoreRules.#above(folder, (await findWorktree(folder)) !== undefined, KINDS);
  }

  /** Only git's rules of the parent folders. */
  static aboveInGit(folder: string): Promise<IgnoreRules> {
    return IgnoreRules.#above(folder, true, KINDS.filter(isGitFile));
  }

  static async #above(folder: string, inGit: boolean, kinds: readonly string[]): Promise<IgnoreRules> {
    let rules = new IgnoreRules(folder, [], { inGit, kinds });
    if (inGit) for (const at of listParentFolders(folder)) rules = await rules.enter(at, await listNames(at));
    return rules;
  }

  /** Rules inside a folder that contains these names. */
  async enter(folder: string, names: ReadonlySet<string>): Promise<IgnoreRules> {
    const kinds = this.#kinds.filter((kind) => names.has(kind.split("/", 1)[0] ?? kind));
    const own = await Promise.all(kinds.map((kind) => loadRules(folder, kind)));
    const startsAnew = this.#inGit && names.has(".git");
    const inherited = this.#files
      .filter((file) => !startsAnew || !isGitFile(file.kind))
      .map((file) => (excludes(file, folder) ? omitPathPatterns(file, folder) : file));
    const files = [...own.filter((file) => file !== undefined), ...inherited];
    return new IgnoreRules(folder, files, { inGit: this.#inGit, kinds: this.#kinds });
  }

  /** Whether the folder's entry is excluded. */
  excludes(name: string, isFolder: boolean): boolean {
    const path = join(this.#folder, name);
    for (const kind of KINDS) {
      const verdict = this.#verdict(kind, isFolder ? `${path}/` : path);
      if (verdict !== undefined) return verdict;
    }
    return false;
  }

  #verdict(kind: string, path: string): boolean | undefined {
    for (const file of this.#files) {
      if (file.kind !== kind) continue;
      const { ignored, unignored } = file.rules.test(relativePath(file.folder, path));
      if (ignored || unignored) return ignored;
    }
    return undefined;
  }
}

/** Parent folders from the top down. */
function listParentFolders(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [] : [...listParentFolders(above), above];
}

/** Empty if the folder cannot be listed. */
async function listNames(folder: string): Promise<ReadonlySet<string>> {
  try {
    return new Set(await readdir(folder));
  } catch {
    return new Set();
  }
}

async function loadRules(folder: string, kind: string): Promise<RuleFile | undefined> {
  const text = await read(join(folder, kind));
  return text === undefined ? undefined : toRuleFile({ kind, folder, text });
}

function toRuleFile(source: { kind: string; folder: string; text: string }): RuleFile {
  return { ...source, rules: ignore({ ignorecase: false }).add(source.text) };
}

function excludes(file: RuleFile, folder: string): boolean {
  return file.rules.ignores(relativePath(file.folder, `${folder}/`));
}

/**
 * In an excluded folder that is searched anyway (requested by name, or included by a stronger file), its
 * exclusion is ignored, but patterns for names still apply.
 */
function omitPathPatterns(file: RuleFile, folder: string): RuleFile {
  const names = file.text.split("\n").filter((line) => !line.trim().replace(/\/$/, "").includes("/"));
  return toRuleFile({ kind: file.kind, folder, text: names.join("\n") });
}

function relativePath(folder: string, path: string): string {
  const rest = relative(folder, path);
  const withSlashes = sep === "/" ? rest : rest.replaceAll(sep, "/");
  return path.endsWith("/") ? `${withSlashes}/` : withSlashes;
}

/** Undefined if the file does not exist or cannot be read. */
async function read(path: string): Promise<string | undefined> {
  try {
    // Reading a pipe or a device would block.
    const found = await stat(path);
    return found.isFile() && found.size <= maxRuleBytes ? await readFile(path, "utf8") : undefined;
  } catch {
    return undefined;
  }
}
