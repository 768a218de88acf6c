import { readdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { isBelow } from "../../base/files/paths.ts";
import { codeOf, isMissing, messageOf } from "../../base/errors.ts";
import { statOrUndefined } from "../../base/files/file-stat.ts";
import { isSecretFile } from "../../permission/secret-file.ts";

/** Limits of one walk. Files past them are reported and skipped. */
const entriesLimit = 5_000;
const depthLimit = 8;

/** Folders of package managers and git. */
const skipped: ReadonlySet<string> = new Set(["node_modules", ".git"]);

export type Report = (path: string, message: string) => void;

export interface WalkOptions {
  wanted(name: string): boolean;
  /** A real path. Links that lead out of it, or to a secret file, are skipped and reported. */
  within?: string | undefined;
  report?: Report;
}

/**
 * Finds matching files in a folder and its subfolders, sorted by name. Follows links; a missing folder has
 * none.
 */
export async function findFiles(root: string, options: WalkOptions): Promise<string[]> {
  const walk = new FolderWalk(root, options);
  await walk.enter(root, 0);
  return walk.found;
}

class FolderWalk {
  readonly found: string[] = [];
  readonly #root: string;
  readonly #options: WalkOptions;
  /** Real paths of visited folders, to stop at link cycles. */
  readonly #entered = new Set<string>();
  #entries = 0;

  constructor(root: string, options: WalkOptions) {
    this.#root = root;
    this.#options = options;
  }

  async enter(folder: string, depth: number): Promise<void> {
    if (this.#isFull) return;
    try {
      const real = await realpath(folder);
      if (this.#entered.has(real) || !this.#mayEnter(folder, real)) return;
      this.#entered.add(real);
      const names = (await readdir(folder)).sort();
      for (const name of names.filter((one) => !skipped.has(one)))
        await this.#visit(join(folder, name), name, depth);
    } catch (thrown) {
      if (!isMissing(thrown)) this.#report(folder, `cannot be listed: ${messageOf(thrown)}`);
    }
  }

  async #visit(path: string, name: string, depth: number): Promise<void> {
    if (this.#isFull) return;
    this.#entries++;
    if (this.#isFull)
      this.#report(this.#root, `contains more than ${entriesLimit} entries; the rest is ignored`);
    const isWanted = this.#options.wanted(name);
    const kind = kindOf(path);
    if (kind === "folder" && depth >= depthLimit)
      this.#report(path, `is more than ${depthLimit} folders deep and is ignored`);
    else if (kind === "folder") await this.enter(path, depth + 1);
    else if (isWanted && kind === "file" && this.#mayEnter(path, await realpath(path))) this.found.push(path);
    else if (isWanted && kind === "other") this.#report(path, "is not a file");
  }

  #mayEnter(path: string, real: string): boolean {
    const { within } = this.#options;
    if (within === undefined) return true;
    if (isBelow(real, within) && !isSecretFile(real)) return true;
    const why = isSecretFile(real) ? "leads to a secret file" : `leads out of ${within}`;
    this.#report(path, `${why} and is ignored`);
    return false;
  }

  get #isFull(): boolean {
    return this.#entries > entriesLimit;
  }

  #report(path: string, message: string): void {
    this.#options.report?.(path, message);
  }
}

function kindOf(path: string): "file" | "folder" | "other" | "missing" {
  try {
    const found = statOrUndefined(path);
    if (found === undefined) return "missing";
    if (found.isDirectory()) return "folder";
    return found.isFile() ? "file" : "other";
  } catch (thrown) {
    if (codeOf(thrown) === undefined) throw thrown;
    return "missing";
  }
}
