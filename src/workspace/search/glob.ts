import { sep } from "node:path";
import { Minimatch } from "minimatch";
import { toSlashes } from "../../base/files/paths.ts";

/** Tests a path relative to the searched folder, with `/`. */
export type PathFilter = (path: string) => boolean;

/**
 * Globs in the syntax of ripgrep's `-g`: without a slash they match a name in any folder, with one they are
 * relative to the searched folder; `!` excludes files and folders; the last matching glob decides.
 * Unlike in ripgrep, a glob never includes what .gitignore excludes, and it may start with the searched
 * folder's path. On Windows a backslash separates folders and escapes nothing. `separator` is that of the system.
 */
export function toPathFilter(globs: readonly string[], folder: string, separator: string = sep): PathFilter {
  const root = toSlashes(folder, separator);
  const rules = globs.map((glob) => toRule(makeRelative(toSlashes(glob, separator), root)));
  const byDefault = rules.every((rule) => rule.excludes);
  return (path) => {
    const rule = rules.findLast((rule) => rule.matches(path));
    return rule ? !rule.excludes : byDefault;
  };
}

function makeRelative(glob: string, folder: string): string {
  const [mark, rest] = glob.startsWith("!") ? ["!", glob.slice(1)] : ["", glob];
  return rest.startsWith(`${folder}/`) ? `${mark}${rest.slice(folder.length)}` : glob;
}

function toRule(glob: string): { excludes: boolean; matches: PathFilter } {
  const excludes = glob.startsWith("!");
  const matcher = toMatcher(excludes ? glob.slice(1) : glob);
  if (!excludes) return { excludes, matches: (path) => matcher.match(path) };
  return { excludes, matches: (path) => listWithParents(path).some((part) => matcher.match(part)) };
}

function toMatcher(glob: string): Minimatch {
  const bare = glob.replace(/^\.\//, "/").replace(/\/$/, "/**");
  const anchored = bare.includes("/") ? bare.replace(/^\/+/, "") : `**/${bare}`;
  return new Minimatch(anchored, {
    dot: true,
    nocomment: true,
    nonegate: true,
    noext: true,
    platform: "linux",
  });
}

/** The path and its parent folders. */
function listWithParents(path: string): string[] {
  const parts = path.split("/");
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}
