import type { ApprovalMode } from "../message/message.ts";
import { evaluate, type Verdict } from "./evaluate.ts";
import {
  type Action,
  type PermissionRequest,
  type Rule,
  type Ruleset,
  connectPermission,
  sandboxPermission,
} from "./rule.ts";

/** The rules, limits, approvals and mode that decide a call before the user is asked. */
export interface Authority {
  /** The agent's rules. */
  readonly rules: Ruleset;
  /**
   * Further rules, each of which must allow the call too: those of a read-only agent, and those of a parent session.
   * Approvals do not lift their "ask".
   */
  readonly limits?: readonly Ruleset[] | undefined;
  /** Rules of the parent agents, as strict as the agent's own. */
  readonly within?: readonly Ruleset[] | undefined;
  /** Stored approvals; they lift an "ask" of `rules`, never a "deny". */
  readonly approvals?: Ruleset;
  /** Which asks of `rules` are allowed without a question. */
  readonly mode?: ApprovalMode;
}

/** The decision on one request before the user is asked. */
export interface Judgement extends Verdict {
  by: "rules" | "approval" | "mode" | "person";
  /** Whether "always allow" can be offered. */
  canRemember: boolean;
}

/** Returns the strictest judgement of the agent's rules and those of its parents. Pure. */
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

/** Returns the strictest of rules and limits; approvals and the mode may lift an "ask" of the rules. */
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
  const mode = authority.mode ?? "ask";
  if (!coversMode(mode, request)) return undefined;
  const opened = evaluate(request, replaceAskByAllow(authority.rules, mode === "sandboxed"));
  if (opened.action !== "allow") return undefined;
  return {
    ...opened,
    reason: `the session is set to ${modeNames[mode]}`,
    by: "mode",
    canRemember: true,
  };
}

/** Repeated calls, leaving the sandbox and connecting from it always ask, in every mode. */
function coversMode(mode: ApprovalMode, { permission, subjects, ofCommand }: PermissionRequest): boolean {
  switch (mode) {
    case "ask":
      return false;
    case "accept-edits":
      return permission === "edit";
    case "sandboxed":
      // Known uses of protected or outside files ask; what is unknown fails in the sandbox.
      return (
        permission === "edit" ||
        (ofCommand === true &&
          (permission === "bash" ||
            subjects.every(({ text, opaque }) => opaque !== undefined || isPrivate(text))))
      );
    case "auto":
      return !["doom_loop", sandboxPermission, connectPermission].includes(permission);
  }
}

/** On Linux a command in the sandbox has its own /tmp. */
function isPrivate(path: string): boolean {
  return process.platform === "linux" && /^\/tmp(?:\/|$)/.test(path);
}

/**
 * Replaces each "ask" by "allow". A deny that may apply and a required confirmation still ask, and with
 * `asksIfIrreversible` what cannot be undone.
 */
function replaceAskByAllow(rules: Ruleset, asksIfIrreversible: boolean): Rule[] {
  const allow = ({ permission, pattern }: Pick<Rule, "permission" | "pattern">): Rule => ({
    permission,
    pattern,
    action: "allow",
    ...(asksIfIrreversible && { asksIfIrreversible }),
  });
  const opened = rules.map((rule) => (rule.action === "ask" || rule.asksIfIrreversible ? allow(rule) : rule));
  return [allow({ permission: "*", pattern: "*" }), ...opened];
}

/** Display names of the modes. */
export const modeNames: Readonly<Record<ApprovalMode, string>> = {
  ask: "ask",
  "accept-edits": "accept edits",
  sandboxed: "sandboxed",
  auto: "auto-approve",
};
