import type { ApprovalMode } from "../message/message.ts";
import { covers, isCatchAll, matches, overlaps } from "./pattern.ts";
import {
  type Action,
  type PermissionRequest,
  type Rule,
  type Ruleset,
  type Subject,
  connectPermission,
  sandboxPermission,
} from "./rule.ts";

/** The result of the rules for a call, with the deciding subject and rule. */
export interface Verdict {
  action: Action;
  permission: string;
  subject: string;
  /** Undefined if no rule matched. */
  rule?: Rule;
  reason: string;
  /** Why the call cannot be undone, if that is why it asks. */
  irreversible?: string;
}

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

/** Orders actions: the highest is the strictest. */
export const strictness: Record<Action, number> = { allow: 0, ask: 1, deny: 2 };

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

/** Returns the strictest verdict over all subjects, the first of equally strict ones. No requests are allowed. */
export function evaluate(request: PermissionRequest | readonly PermissionRequest[], rules: Ruleset): Verdict {
  const requests: readonly PermissionRequest[] = "permission" in request ? [request] : request;
  let strictest: Verdict | undefined;
  for (const { permission, subjects, byNameOnly } of requests) {
    const relevant = rules.filter((rule) =>
      byNameOnly === true ? rule.permission === permission : matches(rule.permission, permission),
    );
    for (const subject of subjects) {
      const verdict = evaluateSubject(
        permission,
        subject,
        subject.changesDirectory ? omitCatchAll(relevant) : relevant,
      );
      if (subject.isAlternativeReading === true && verdict.action !== "deny") continue;
      if (!strictest || strictness[verdict.action] > strictness[strictest.action]) strictest = verdict;
    }
  }
  return strictest ?? { action: "allow", permission: "*", subject: "", reason: "it needs no permission" };
}

/** Omits rules for `*`; without a match, allows. */
function omitCatchAll(rules: Ruleset): Ruleset {
  return [
    { permission: "*", pattern: "*", action: "allow" },
    ...rules.filter(({ pattern }) => !isCatchAll(pattern)),
  ];
}

/**
 * Evaluates rules that are already filtered by permission.
 * - The last rule that applies to the subject itself wins.
 * - An ask that applies only to part of it, or to another spelling, does not override an earlier deny.
 */
function evaluateSubject(permission: string, subject: Subject, rules: Ruleset): Verdict {
  const base = { permission, subject: subject.named ?? subject.text };
  let partly: Verdict | undefined;
  let stricterBehind: Rule | undefined;
  for (const rule of rules.toReversed()) {
    const found = findApplication(rule, subject);
    const verdict = found && {
      ...base,
      action: found.action,
      rule,
      reason: describeReason(found, rule, subject),
    };
    if (verdict?.action === "deny") return verdict;
    if (verdict?.action === "allow") return partly ?? confirmAllow(verdict, subject, stricterBehind);
    if (verdict && found?.coversSubject) return partly ?? verdict;
    partly ??= verdict;
    if (rule.action !== "allow" && !isCatchAll(rule.pattern)) stricterBehind ??= rule;
  }
  return partly ?? { ...base, action: "ask", reason: describeUnmatched(subject) };
}

function describeUnmatched({ asked, opaque, confirm }: Subject): string {
  return asked ?? opaque ?? confirm ?? "no rule matches";
}

/**
 * Turns an allow into an ask if the subject must be confirmed, cannot be undone and only the built-in default allows
 * it, or is opaque and a stricter rule may apply.
 */
function confirmAllow(verdict: Verdict, subject: Subject, stricterBehind: Rule | undefined): Verdict {
  if (subject.confirm !== undefined) return { ...verdict, action: "ask", reason: subject.confirm };
  const { irreversible } = subject;
  if (irreversible !== undefined && verdict.rule?.asksIfIrreversible === true)
    return { ...verdict, action: "ask", irreversible, reason: describeIrreversible([irreversible]) };
  if (!stricterBehind || subject.opaque === undefined || !isCatchAll(verdict.rule?.pattern ?? ""))
    return verdict;
  const reason = `${subject.opaque}, and a stricter rule may apply`;
  return { ...verdict, action: "ask", rule: stricterBehind, reason };
}

/** Returns why a question is asked about something that cannot be undone. */
export function describeIrreversible(reasons: readonly string[]): string {
  return `it cannot be undone: ${[...new Set(reasons)].join(", ")}`;
}

interface Application {
  action: Action;
  /** The rule applies to the subject itself and to everything that the subject may be. */
  coversSubject: boolean;
  /** The part to which the rule applies, if not the subject itself. */
  scope?: string;
}

/** Returns how the rule applies to the subject; undefined if it does not. */
function findApplication(rule: Rule, subject: Subject): Application | undefined {
  const { action, pattern } = rule;
  if (action === "allow") return allows(rule, subject) ? { action, coversSubject: true } : undefined;
  if (matchesWhole(pattern, subject)) return { action, coversSubject: true };
  if (matchesPartly(pattern, subject)) return { action, coversSubject: false };
  const texts = [subject.text, ...(subject.also ?? [])];
  const below = subject.below && texts.some((text) => overlaps(pattern, createBelowPattern(text)));
  const within = subject.within && action === "deny" && texts.some((text) => namesFileBelow(pattern, text));
  if (below || within) return { action: "ask", coversSubject: false, scope: "for something below it" };
  if (subject.becomes === undefined || !overlaps(pattern, subject.becomes)) return undefined;
  return { action: "ask", coversSubject: false, scope: "for what it may become when it runs" };
}

function matchesWhole(pattern: string, { text, glob }: Subject): boolean {
  return glob ? covers(pattern, text) : matches(pattern, text);
}

function matchesPartly(pattern: string, { text, also = [], glob, names }: Subject): boolean {
  if (glob && names) return names.some((name) => matches(pattern, name));
  return [text, ...also].some((one) => (glob ? overlaps(pattern, one) : matches(pattern, one)));
}

/** Whether the pattern's text before its first wildcard is inside the folder. */
function namesFileBelow(pattern: string, folder: string): boolean {
  const [named = ""] = pattern.split(/[*?]/);
  return folder === "." ? /^[^/]/.test(named) : named.startsWith(`${folder}/`);
}

function createBelowPattern(folder: string): string {
  return folder === "." ? "*" : `${folder}/*`;
}

function allows(rule: Rule, subject: Subject): boolean {
  if (isCatchAll(rule.pattern)) return true;
  const isNamed = spellsOut(rule.pattern, subject.options) || namesInterpreter(rule, subject);
  if (subject.opaque !== undefined && !isNamed) return false;
  return matchesWhole(rule.pattern, subject);
}

/** `node *` covers all code that node runs, as a script file could do the same. */
function namesInterpreter({ pattern, isApproval }: Rule, { interpreter }: Subject): boolean {
  return interpreter !== undefined && isApproval !== true && pattern === `${interpreter} *`;
}

/** `sed -i *` spells out `-i`, `sed *` does not. */
function spellsOut(pattern: string, options: readonly string[] | undefined): boolean {
  if (!options || options.length === 0) return false;
  const words = pattern.split(" ").map((word) => word.replace(/[=*].*$/, ""));
  return options.every((option) => words.includes(option));
}

function describeReason({ action, scope: about }: Application, rule: Rule, subject: Subject): string {
  const named = `the rule ${rule.permission}: "${rule.pattern}" says ${rule.action}`;
  if (action !== "allow" && subject.opaque !== undefined) return `${named}; ${subject.opaque}`;
  return about === undefined ? named : `${named} ${about}`;
}

/** Whether a tool is hidden from the model: its last rule denies everything. */
export function isHidden(permission: string, rules: Ruleset): boolean {
  const last = rules.findLast((rule) => matches(rule.permission, permission));
  return last !== undefined && last.action === "deny" && isCatchAll(last.pattern);
}

/** Whether the rules ask before edits, of all files or of some. */
export function asksForEdits(rules: Ruleset): boolean {
  return [{ text: "*" }, { text: "*", glob: true }].some(
    (subject) => evaluate({ permission: "edit", subjects: [subject], always: [] }, rules).action === "ask",
  );
}

/** Display names of the modes. */
export const modeNames: Readonly<Record<ApprovalMode, string>> = {
  ask: "ask",
  "accept-edits": "accept edits",
  sandboxed: "sandboxed",
  auto: "auto-approve",
};
