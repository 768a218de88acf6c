import { realpathSync } from "node:fs";
import { dirname, join, basename } from "node:path";
import { codeOf } from "../base/errors.ts";

/** The real path of an absolute path: links of its deepest existing ancestor resolved, the rest appended. */
export function realPathSync(path: string): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    const parent = dirname(path);
    if (parent === path || !mayBeMissing(error)) return path;
    return join(realPathSync(parent), basename(path));
  }
}

function mayBeMissing(error: unknown): boolean {
  const code = codeOf(error);
  return code === "ENOENT" || code === "ENOTDIR" || code === "EACCES";
}
