import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import ignore, { type Ignore } from "ignore";
import { mostRuleBytes } from "./unusual-ignore-rules.ts";
import { findWorktree } from "../worktree.ts";

/** Files with rules, the strongest first; of one kind, the deepest folder's come first. */
const KINDS = [".rgignore", ".ignore", ".gitignore", ".git/info/exclude"];
const isOfGit = (kind: string): boolean => kind.startsWith(".git");

interface RuleFile {
  kind: string;
  /** The folder that its patterns start from. */
  folder: string;
  text: string;
  rules: Ignore;
}

/** What .gitignore and its kin exclude, as seen from one folder; immutable, the folders below derive theirs from it. */
export class IgnoreRules {
  readonly #folder: string;
  /** Deepest folder first. */
  readonly #files: readonly RuleFile[];
  /** Then a repository inside another starts anew, as in git. */
  readonly #inGit: boolean;

  private constructor(folder: string, files: readonly RuleFile[], inGit: boolean) {
    this.#folder = folder;
    this.#files = files;
    this.#inGit = inGit;
  }

  /** The rules of the folders above: those of git from the top of its worktree on; outside git none. */
  static async above(folder: string): Promise<IgnoreRules> {
    const inGit = (await findWorktree(folder)) !== undefined;
    let rules = new IgnoreRules(folder, [], inGit);
    if (inGit) for (const at of foldersAbove(folder)) rules = await rules.enter(at, await namesIn(at));
    return rules;
  }

  /** The rules inside a folder that holds these names. */
  async enter(folder: string, names: ReadonlySet<string>): Promise<IgnoreRules> {
    const kinds = KINDS.filter((kind) => names.has(kind.split("/", 1)[0] ?? kind));
    const own = await Promise.all(kinds.map((kind) => loadRules(folder, kind)));
    const startsAnew = this.#inGit && names.has(".git");
    const inherited = this.#files
      .filter((file) => !startsAnew || !isOfGit(file.kind))
      .map((file) => (excludes(file, folder) ? withoutPaths(file, folder) : file));
    return new IgnoreRules(folder, [...own.filter((file) => file !== undefined), ...inherited], this.#inGit);
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

/** From the top down, without the folder itself. */
function foldersAbove(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [] : [...foldersAbove(above), above];
}

/** Of a folder that we may enter but not list, nothing is known. */
async function namesIn(folder: string): Promise<ReadonlySet<string>> {
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
 * Inside an excluded folder that is searched nevertheless (asked for by name, or brought back by a stronger file)
 * its exclusion says nothing, but patterns for names still hold.
 */
function withoutPaths(file: RuleFile, folder: string): RuleFile {
  const names = file.text.split("\n").filter((line) => !line.trim().replace(/\/$/, "").includes("/"));
  return toRuleFile({ kind: file.kind, folder, text: names.join("\n") });
}

function relativePath(folder: string, path: string): string {
  const rest = relative(folder, path);
  const withSlashes = sep === "/" ? rest : rest.replaceAll(sep, "/");
  return path.endsWith("/") ? `${withSlashes}/` : withSlashes;
}

/** Undefined when there is no such file, or none that we may read. */
async function read(path: string): Promise<string | undefined> {
  try {
    // A pipe would wait for its writer, a device never end.
    const found = await stat(path);
    return found.isFile() && found.size <= mostRuleBytes ? await readFile(path, "utf8") : undefined;
  } catch {
    return undefined;
  }
}
