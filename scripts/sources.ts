import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** Paths that a build depends on, relative to the repository. */
export const sourcePaths = ["src", "prompts", "catalog", "schema", "skills", "scripts", "package.json"];

/**
 * Returns whether `dist/` is older than a source. The build sets the time of `dist/` to its own start, so a source that
 * changed during the build counts as newer. Folders count too: deleting a file changes only its folder.
 */
export function isBundleStale(root: string): boolean {
  const builtAt = statSync(join(root, "dist"), { throwIfNoEntry: false })?.mtimeMs;
  if (builtAt === undefined) return true;
  return sourcePaths.some((path) => changedAt(join(root, path)) > builtAt);
}

function changedAt(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return 0;
  if (!stats.isDirectory()) return stats.mtimeMs;
  return Math.max(stats.mtimeMs, ...readdirSync(path).map((name) => changedAt(join(path, name))));
}
