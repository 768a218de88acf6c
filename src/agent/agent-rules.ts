import { isCatchAll, matches, overlaps } from "../permission/pattern.ts";
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
