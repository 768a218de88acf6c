import { toSlashes } from "../base/files/paths.ts";
import { dirname, relative } from "node:path";

/** Files that the plan agent may write, relative to the workspace. */
export const PLAN_FILES = [".opencode/plans/*.md", ".fairlead/plans/*.md"] as const;

const planFolders: ReadonlySet<string> = new Set(PLAN_FILES.map((pattern) => dirname(pattern)));

/** Returns whether the file is a plan document of the workspace. `path` is absolute. */
export function isPlanFile(path: string, cwd: string): boolean {
  const relativePath = toSlashes(relative(cwd, path));
  return relativePath.endsWith(".md") && planFolders.has(dirname(relativePath));
}
