import { readdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { isBelow } from "../../base/files/paths.ts";
import { codeOf, isMissing, messageOf } from "../../base/errors.ts";
import { statOrUndefined } from "../../base/files/file-stat.ts";
import { isSecretFile } from "../../permission/secret-file.ts";

/** Entries that one walk looks at, and folders that it goes down; what lies beyond is reported and left out. */
const entriesLimit = 5_000;
const depthLimit = 8;

/** Never entered: what package managers and git put there. */
const skipped: ReadonlySet<string> = new Set(["node_modules", ".git"]);

export type Report = (path: string, message: string) => void;

export interface WalkOptions {
  wanted(name: string): boolean;
  /** A real path. Links that lead out of it, or to a file of secrets, are left out and reported. */
  within?: string | undefined;
  report?: Report;
}

/** The wanted files below a folder, sorted by name in each folder; none where it is not there. Links are followed. */
export async function filesBelow(root: string, options: WalkOptions): Promise<string[]> {
  const walk = new FolderWalk(root, options);
  await walk.enter(root, 0);
  return walk.found;
}

class FolderWalk {
  readonly found: string[] = [];
  readonly #root: string;
  readonly #options: WalkOptions;
  /** Real paths, so that a link to a folder above does not go round for ever. */
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
        await this.#look(join(folder, name), name, depth);
    } catch (thrown) {
      if (!isMissing(thrown)) this.#report(folder, `cannot be listed: ${messageOf(thrown)}`);
    }
  }

  async #look(path: string, name: string, depth: number): Promise<void> {
    if (this.#isFull) return;
    this.#entries++;
    if (this.#isFull)
      this.#report(this.#root, `holds more than ${entriesLimit} entries; the rest is left out`);
    const isWanted = this.#options.wanted(name);
    const kind = kindOf(path);
    if (kind === "folder" && depth >= depthLimit)
      this.#report(path, `lies more than ${depthLimit} folders deep and is left out`);
    else if (kind === "folder") await this.enter(path, depth + 1);
    else if (isWanted && kind === "file" && this.#mayEnter(path, await realpath(path))) this.found.push(path);
    else if (isWanted && kind === "other") this.#report(path, "is not a file");
  }

  #mayEnter(path: string, real: string): boolean {
    const { within } = this.#options;
    if (within === undefined) return true;
    if (isBelow(real, within) && !isSecretFile(real)) return true;
    const why = isSecretFile(real) ? "leads to a file of secrets" : `leads out of ${within}`;
    this.#report(path, `${why} and is left out`);
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
