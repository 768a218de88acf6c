import { Minimatch } from "minimatch";
import { withSlashes } from "../paths.ts";

/** Whether a file is wanted, by its path relative to the searched folder, with `/`. */
export type PathFilter = (path: string) => boolean;

/**
 * Globs as ripgrep's `-g` understands them: without a slash they match a name in any folder, with one they start at
 * the searched folder; `!` excludes, a folder with all in it too; the last glob that matches decides.
 * Unlike there, a glob never brings back what .gitignore excludes, and one that begins with the searched folder's own
 * path goes on from there.
 */
export function toPathFilter(globs: readonly string[], folder: string): PathFilter {
  const rules = globs.map((glob) => toRule(fromFolder(glob, withSlashes(folder))));
  const byDefault = rules.every((rule) => rule.excludes);
  return (path) => {
    const rule = rules.findLast((rule) => rule.matches(path));
    return rule ? !rule.excludes : byDefault;
  };
}

function fromFolder(glob: string, folder: string): string {
  const [mark, rest] = glob.startsWith("!") ? ["!", glob.slice(1)] : ["", glob];
  return rest.startsWith(`${folder}/`) ? `${mark}${rest.slice(folder.length)}` : glob;
}

function toRule(glob: string): { excludes: boolean; matches: PathFilter } {
  const excludes = glob.startsWith("!");
  const matcher = toMatcher(excludes ? glob.slice(1) : glob);
  if (!excludes) return { excludes, matches: (path) => matcher.match(path) };
  return { excludes, matches: (path) => withFolders(path).some((part) => matcher.match(part)) };
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

/** The path and the folders it lies in. */
function withFolders(path: string): string[] {
  const parts = path.split("/");
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}
