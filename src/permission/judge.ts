import type { ApprovalMode } from "../message/message.ts";
import { evaluate, type Verdict } from "./evaluate.ts";
import type { Action, PermissionRequest, Rule, Ruleset } from "./rule.ts";

/** Everything that has a say over a call without asking anybody. */
export interface Authority {
  /** The agent's rules. */
  readonly rules: Ruleset;
  /**
   * Further rules, each of which must allow the call too: what an agent that only reads keeps whatever the person's
   * configuration allows, what a child may not do because its parent may not. Nothing remembered lifts their "ask".
   */
  readonly limits?: readonly Ruleset[] | undefined;
  /** Rules of those for whom the agent works, each of which counts as much as the agent's own. */
  readonly within?: readonly Ruleset[] | undefined;
  /** What was approved for good; lifts an "ask" of `rules`, never a "deny". */
  readonly approvals?: Ruleset;
  /** How much of what `rules` ask for goes without asking. */
  readonly mode?: ApprovalMode;
}

/** What is decided over one request before a person is asked. */
export interface Judgement extends Verdict {
  by: "rules" | "approval" | "mode" | "person";
  /** Whether "always" could allow the like of it from now on. */
  canRemember: boolean;
}

/** The strictest over the agent's rules and the rules of those for whom it works. Pure. */
export function judge(request: PermissionRequest, authority: Authority): Judgement {
  const { rules, within = [] } = authority;
  const judgements = [rules, ...within].map((ruleset) =>
    judgeByRules(request, { ...authority, rules: ruleset }),
  );
  const strictest = judgements.reduce((one, other) =>
    strictness[other.action] > strictness[one.action] ? other : one,
  );
  return { ...strictest, canRemember: judgements.every(({ canRemember }) => canRemember) };
}

/** The strictest of rules and limits, then what approvals and the mode lift of an "ask". */
function judgeByRules(request: PermissionRequest, authority: Authority): Judgement {
  const verdict = evaluate(request, authority.rules);
  const limit = findStrictestLimit(request, authority.limits ?? []);
  if (
    limit !== undefined &&
    strictness[limit.action] >= strictness[verdict.action] &&
    limit.action !== "allow"
  )
    return { ...limit, by: "rules", canRemember: false };
  const canRemember = request.always.length > 0;
  if (verdict.action !== "ask") return { ...verdict, by: "rules", canRemember };
  if (request.requested === true)
    return { ...verdict, action: "allow", reason: "you asked for it by name", by: "person", canRemember };
  const lifted = liftAsk(request, authority);
  return lifted ?? { ...verdict, by: "rules", canRemember };
}

const strictness: Record<Action, number> = { allow: 0, ask: 1, deny: 2 };

function findStrictestLimit(request: PermissionRequest, limits: readonly Ruleset[]): Verdict | undefined {
  return limits
    .map((limit) => evaluate(request, limit))
    .toSorted((one, other) => strictness[other.action] - strictness[one.action])
    .at(0);
}

function liftAsk(request: PermissionRequest, authority: Authority): Judgement | undefined {
  const approvals = (authority.approvals ?? []).map((rule) => ({ ...rule, isApproval: true }));
  const approved = evaluate(request, [...authority.rules, ...approvals]);
  if (approved.action === "allow") {
    const reason = `an approval allows ${request.permission}: "${approved.rule?.pattern ?? "*"}"`;
    return { ...approved, reason, by: "approval", canRemember: true };
  }
  if (!coversMode(authority.mode ?? "ask", request.permission)) return undefined;
  const opened = evaluate(request, replaceAskByAllow(authority.rules));
  if (opened.action !== "allow") return undefined;
  return {
    ...opened,
    reason: `the session is set to ${modeNames[authority.mode ?? "ask"]}`,
    by: "mode",
    canRemember: true,
  };
}

/** A loop is for a person to look at, however much is approved. */
function coversMode(mode: ApprovalMode, permission: string): boolean {
  switch (mode) {
    case "ask":
      return false;
    case "accept-edits":
      return permission === "edit";
    case "auto":
      return permission !== "doom_loop";
  }
}

/** The same rules with "allow" for each "ask": a deny that may apply, and what must be confirmed, still ask. */
function replaceAskByAllow(rules: Ruleset): Rule[] {
  const opened = rules.map((rule): Rule => (rule.action === "ask" ? { ...rule, action: "allow" } : rule));
  return [{ permission: "*", pattern: "*", action: "allow" }, ...opened];
}

/** What the modes are called where people read of them. */
export const modeNames: Readonly<Record<ApprovalMode, string>> = {
  ask: "ask",
  "accept-edits": "accept edits",
  auto: "auto-approve",
};
