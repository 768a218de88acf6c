import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** Limits of the search for a project's languages, which runs before the first message. */
const fileLimit = 5_000;
const folderLimit = 300;

/** Folders of other people's code and of generated files. */
const skippedFolders: ReadonlySet<string> = new Set([
  "node_modules",
  "vendor",
  "third_party",
  "target",
  "dist",
  "build",
  "out",
  "coverage",
  "venv",
  "__pycache__",
]);

export interface FoundFiles {
  /** Absolute, those nearest to the folder first. */
  readonly paths: readonly string[];
  /** Whether these are all files. */
  readonly isComplete: boolean;
}

/** Lists files of a folder up to a limit, level by level. Leaves out hidden folders and links to folders. */
export async function findFiles(folder: string): Promise<FoundFiles> {
  const paths: string[] = [];
  const folders = [folder];
  for (const [index, path] of folders.entries()) {
    if (index >= folderLimit || paths.length >= fileLimit) return { paths, isComplete: false };
    const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
    for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
      if (entry.isFile()) paths.push(join(path, entry.name));
      else if (entry.isDirectory() && !entry.name.startsWith(".") && !skippedFolders.has(entry.name))
        folders.push(join(path, entry.name));
    }
  }
  return { paths, isComplete: true };
}
