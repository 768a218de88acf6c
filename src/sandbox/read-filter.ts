import { isCatchAll, matches } from "../permission/pattern.ts";
import type { Rule, Ruleset } from "../permission/rule.ts";

/** The files that rules for `read` protect. Paths are relative to the working directory, or absolute outside of it. */
export interface ReadFilter {
  /** Equal for filters that hide the same paths. */
  readonly key: string;
  hides(path: string): boolean;
  /** Whether a rule protects everything in the folder. */
  hidesFolder(path: string): boolean;
  /** Absolute files and folders that rules name. */
  readonly named: readonly string[];
}

/**
 * Creates a filter from lists of rules, each of which must allow reading. A general ask or deny (`*`) hides nothing: no
 * program could start.
 */
export function createReadFilter(layers: readonly Ruleset[]): ReadFilter {
  const relevant = layers.map((rules) => rules.filter(isRelevant));
  const protecting = relevant.flat().filter(({ action }) => action !== "allow");
  const isHiddenBy = (rules: Ruleset, path: string) =>
    (rules.findLast(({ pattern }) => matches(pattern, path))?.action ?? "allow") !== "allow";
  const hides = (path: string) =>
    protecting.some(({ pattern }) => matches(pattern, path)) &&
    relevant.some((rules) => isHiddenBy(rules, path));
  return {
    key: JSON.stringify(relevant),
    hides,
    hidesFolder: (path) =>
      protecting.some(({ pattern }) => pattern === `${path}/*` || pattern === `${path}/**`) &&
      hides(`${path}/*`),
    named: protecting.flatMap(({ pattern }) => toAbsolutePath(pattern) ?? []),
  };
}

function isRelevant({ permission, pattern, action }: Rule): boolean {
  return matches(permission, "read") && (action === "allow" || !isCatchAll(pattern));
}

/** Returns the path of `/a/b` and `/a/b/*`; undefined for other patterns. */
function toAbsolutePath(pattern: string): string | undefined {
  const path = pattern.replace(/\/\*+$/, "");
  return path.startsWith("/") && path.length > 1 && !/[*?]/.test(path) ? path : undefined;
}
