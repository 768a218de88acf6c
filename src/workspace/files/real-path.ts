import { readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { codeOf } from "../../base/errors.ts";

/** The number of links that Linux follows before it says ELOOP. */
const linkLimit = 40;

/**
 * The real path of an absolute path: links of its deepest existing ancestor resolved, the rest appended. A link whose
 * target is not there yet leads to that target, since writing to the link would make it.
 */
export function realPathSync(path: string, linksLeft = linkLimit): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    const parent = dirname(path);
    if (parent === path || !mayBeMissing(error)) return path;
    const place = join(realPathSync(parent, linksLeft), basename(path));
    const target = linksLeft > 0 ? linkTarget(place) : undefined;
    return target === undefined ? place : realPathSync(resolve(dirname(place), target), linksLeft - 1);
  }
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return undefined;
  }
}

function mayBeMissing(error: unknown): boolean {
  const code = codeOf(error);
  return code === "ENOENT" || code === "ENOTDIR" || code === "EACCES";
}
