import { isCatchAll, matches, overlaps } from "../permission/pattern.ts";
import { outputRules } from "../permission/default-rules.ts";
import type { Rule, Ruleset } from "../permission/rule.ts";

/**
 * Returns the rules of `added` that cannot loosen `prior` when appended: every deny, and each ask that
 * overrides no deny.
 */
export function tighten(prior: Ruleset, added: Ruleset): Rule[] {
  const denials = [...prior, ...added].filter((rule) => rule.action === "deny");
  return added.filter((rule) => {
    if (rule.action !== "ask") return rule.action === "deny";
    return !denials.some((denial) => overlap(denial, rule));
  });
}

/** Whether some edit might be allowed. Returns true if unsure. */
export function mayEdit(rules: Ruleset): boolean {
  const about = rules.filter(({ permission }) => matches(permission, "edit"));
  const lastWall = about.findLastIndex(({ action, pattern }) => action === "deny" && isCatchAll(pattern));
  return lastWall === -1 || about.slice(lastWall + 1).some(({ action }) => action !== "deny");
}

function overlap(a: Rule, b: Rule): boolean {
  return overlaps(a.permission, b.permission) && overlaps(a.pattern, b.pattern);
}

const isLoose = ({ pattern, action }: Rule): boolean => isCatchAll(pattern) && action !== "deny";

/**
 * Filters the user's general rules for an agent with a limit.
 * - A general ask or allow does not hide the agent's own specific rules (reading commands, plan files).
 * - Specific rules and denials of the user always apply.
 * - General rules that the limit makes ineffective are omitted.
 */
export function filterByLimit(rules: Ruleset, builtIn: Ruleset, limit: Ruleset): Rule[] {
  const specific = builtIn.filter(({ pattern, action }) => action === "allow" && !isCatchAll(pattern));
  const permissions = new Set(specific.map(({ permission }) => permission));
  const general = limit.filter(({ pattern }) => isCatchAll(pattern));
  const guarded = new Set([...permissions].filter((permission) => isClosed(permission, general)));
  const own = builtIn.filter(({ permission }) => guarded.has(permission));
  const counting = rules.filter((rule, at) => !isIneffective(rule, rules.slice(0, at), general));
  return reinstate(counting, (rule) =>
    isLoose(rule) ? own.filter(({ permission }) => matches(rule.permission, permission)) : [],
  );
}

function isIneffective(rule: Rule, before: Ruleset, generalLimit: Ruleset): boolean {
  if (!isLoose(rule) || /[*?]/.test(rule.permission)) return false;
  const hides = before.some(({ permission }) => overlaps(permission, rule.permission));
  return isClosed(rule.permission, generalLimit) && !hides;
}

/** Whether the limit asks for or denies everything it does not specifically allow, by its rules for `*`. */
function isClosed(permission: string, generalLimit: Ruleset): boolean {
  const last = generalLimit.findLast((rule) => matches(rule.permission, permission));
  return last !== undefined && last.action !== "allow";
}

/**
 * Keeps the folder of stored tool outputs readable after general rules, if a reading tool is available; a specific rule
 * may still deny it.
 */
export function allowOutputFolder(
  rules: Ruleset,
  folder: string,
  findReaders: () => readonly string[],
): Rule[] {
  return reinstate(rules, (rule) => {
    if (!isCatchAll(rule.pattern) || rule.action === "allow") return [];
    const readers = findReaders();
    if (readers.length === 0) return [];
    const opened = [...readers, "external_directory", ...(rule.action === "ask" ? ["bash"] : [])];
    return opened
      .filter((permission) => matches(rule.permission, permission))
      .flatMap((permission) => outputRules(permission, folder));
  });
}

/** Repeats the specific rules after each general rule that would hide them. */
function reinstate(rules: Ruleset, hiddenBy: (rule: Rule) => Ruleset): Rule[] {
  return rules.flatMap((rule, at) => {
    const hidden = hiddenBy(rule);
    if (hidden.length === 0 || rule.action === "allow") return [rule, ...hidden];
    const isStrict = ({ permission, pattern, action }: Rule) =>
      action !== "allow" &&
      !isCatchAll(pattern) &&
      hidden.some((one) => overlaps(permission, one.permission));
    return [rule, ...hidden, ...rules.slice(0, at).filter(isStrict)];
  });
}
