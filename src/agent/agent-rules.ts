import { isCatchAll, matches, overlaps } from "../permission/pattern.ts";
import { outputRules, readingTools } from "../permission/evaluate.ts";
import type { Rule, Ruleset } from "../permission/rule.ts";

/**
 * Those of `added` that cannot make anything laxer when they are placed after `prior`: every deny, and an ask
 * where no deny could be lifted by it.
 */
export function tighten(prior: Ruleset, added: Ruleset): Rule[] {
  const denials = [...prior, ...added].filter((rule) => rule.action === "deny");
  return added.filter((rule) => {
    if (rule.action !== "ask") return rule.action === "deny";
    return !denials.some((denial) => meet(denial, rule));
  });
}

/** Whether some edit might pass. Says yes where it is not certain. */
export function mayEdit(rules: Ruleset): boolean {
  const about = rules.filter(({ permission }) => matches(permission, "edit"));
  const lastWall = about.findLastIndex(({ action, pattern }) => action === "deny" && isCatchAll(pattern));
  return lastWall === -1 || about.slice(lastWall + 1).some(({ action }) => action !== "deny");
}

function meet(a: Rule, b: Rule): boolean {
  return overlaps(a.permission, b.permission) && overlaps(a.pattern, b.pattern);
}

/** A rule about everything of its permission that does not deny it. */
const isLoose = ({ pattern, action }: Rule): boolean => isCatchAll(pattern) && action !== "deny";

/**
 * The user's rules for all agents as they count for an agent with a limit. What the agent's own rules allow in
 * particular (its list of reading commands, its plan files) is not hidden by a general ask or allow; specific rules
 * and denials of the user count as ever. General rules that the limit makes void are left out.
 */
export function underLimit(rules: Ruleset, builtIn: Ruleset, limit: Ruleset): Rule[] {
  const guarded = new Set(
    builtIn
      .filter(({ pattern, action }) => action === "allow" && !isCatchAll(pattern))
      .map(({ permission }) => permission)
      .filter((permission) => isClosed(permission, limit)),
  );
  const own = builtIn.filter(({ permission }) => guarded.has(permission));
  const counting = rules.filter((rule, at) => !isVoid(rule, rules.slice(0, at), limit));
  return reinstate(counting, (rule) =>
    isLoose(rule) ? own.filter(({ permission }) => matches(rule.permission, permission)) : [],
  );
}

function isVoid(rule: Rule, before: Ruleset, limit: Ruleset): boolean {
  if (!isLoose(rule) || /[*?]/.test(rule.permission)) return false;
  const hides = before.some(({ permission }) => overlaps(permission, rule.permission));
  return isClosed(rule.permission, limit) && !hides;
}

/** Whether the limit asks for or denies all that it does not allow in particular. */
function isClosed(permission: string, limit: Ruleset): boolean {
  const general = limit.findLast((rule) => isCatchAll(rule.pattern) && matches(rule.permission, permission));
  return general !== undefined && general.action !== "allow";
}

/** Keeps the folder of whole outputs readable after general rules; a specific rule may still close it. */
export function withOutputs(
  rules: Ruleset,
  folder: string,
  isHidden: (permission: string) => boolean,
): Rule[] {
  const readers = readingTools.filter((permission) => !isHidden(permission));
  if (readers.length === 0) return [...rules];
  return reinstate(rules, (rule) => {
    if (!isCatchAll(rule.pattern) || rule.action === "allow") return [];
    const opened = [...readers, "external_directory", ...(rule.action === "ask" ? ["bash"] : [])];
    return opened
      .filter((permission) => matches(rule.permission, permission))
      .flatMap((permission) => outputRules(permission, folder));
  });
}

/** Places further rules after each rule that would hide them, and after these what was said in particular before an ask. */
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
