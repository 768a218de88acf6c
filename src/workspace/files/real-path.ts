import { readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { codeOf } from "../../base/errors.ts";

/** Links that Linux follows before ELOOP. */
const linkLimit = 40;

/**
 * Resolves links of the deepest existing ancestor and appends the rest. A link to a missing target resolves
 * to that target, because writing to the link would create it.
 */
export function realPathSync(path: string, linksLeft = linkLimit): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    const parent = dirname(path);
    if (parent === path || !mayBeMissing(error)) return path;
    const candidate = join(realPathSync(parent, linksLeft), basename(path));
    const target = linksLeft > 0 ? readLinkTarget(candidate) : undefined;
    return target === undefined
      ? candidate
      : realPathSync(resolve(dirname(candidate), target), linksLeft - 1);
  }
}

function readLinkTarget(path: string): string | undefined {
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
