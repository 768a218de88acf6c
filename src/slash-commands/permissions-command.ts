import type { Agent } from "../agent/agent.ts";
import type { ApprovalMode, Message } from "../message/message.ts";
import type { CallDecision } from "../message/part.ts";
import type { Approval, Approvals } from "../permission/approvals.ts";
import { outputRules, readingCommandRules } from "../permission/default-rules.ts";
import { modeNames } from "../permission/judge.ts";
import { covers, isCatchAll } from "../permission/pattern.ts";
import type { Rule, Ruleset } from "../permission/rule.ts";

/** The parts of a session that the command uses. */
export interface PermissionsContext {
  readonly agent: Agent;
  readonly approvals: Approvals;
  readonly info: { readonly approval?: ApprovalMode | undefined };
  readonly transcript: { readonly messages: readonly Message[] };
}

/** Maximum number of listed rules and log entries. */
const rulesLimit = 60;
const logLimit = 50;
/** Maximum number of patterns per line. */
const patternsLimit = 30;

const usage =
  "Use `/permissions` for the list, `/permissions revoke 1` to revoke an approval, `/permissions keep 1` to store one for the project, `/permissions log` for the decision log.";

/** `/permissions [revoke N | keep N | log]`. */
export async function runPermissions(session: PermissionsContext, rest: string): Promise<string> {
  const [verb = "", number = "", ...more] = rest.split(/\s+/).filter((word) => word !== "");
  if (verb === "") return describePermissions(session);
  if (verb === "log" && number === "") return describeLog(session.transcript.messages);
  const approval = more.length === 0 ? session.approvals.list()[Number(number) - 1] : undefined;
  if (verb !== "revoke" && verb !== "keep") return usage;
  if (approval === undefined) return `Approval "${number}" not found. ${usage}`;
  return verb === "revoke" ? revoke(session.approvals, approval) : keep(session.approvals, approval);
}

async function revoke(approvals: Approvals, approval: Approval): Promise<string> {
  await approvals.revoke(approval);
  return `Revoked: ${describeApproval(approval)}. You will be asked again.`;
}

async function keep(approvals: Approvals, approval: Approval): Promise<string> {
  if (approval.scope === "project") return `${describeApproval(approval)} is already stored for the project.`;
  if (!["bash", "edit", "sandbox", "connect"].includes(approval.permission))
    return `${describeApproval(approval)} applies to this session only: approvals for paths outside the workspace or with secrets are not stored.`;
  await approvals.add([approval], "project");
  await approvals.revoke(approval);
  return `Stored: ${describeApproval({ ...approval, scope: "project" })}.`;
}

function describePermissions({ agent, approvals, info }: PermissionsContext): string {
  const approved = approvals.list().map((approval, index) => `${index + 1}. ${describeApproval(approval)}`);
  const limits = (agent.limits ?? []).flatMap((limit) => [
    "",
    `**Limits of ${agent.name}**, regardless of the rules above:`,
    "",
    ...describeRules(limit),
  ]);
  return [
    `**Rules of ${agent.name}**, in order; the last match wins:`,
    "",
    ...describeRules(agent.rules),
    ...limits,
    "",
    approved.length === 0 ? "**No stored approvals.**" : "**Approved**, where the rules ask:",
    "",
    ...approved,
    ...(approved.length === 0 ? [] : [""]),
    `The approval mode is **${modeNames[info.approval ?? "ask"]}**. ${usage}`,
  ].join("\n");
}

function describeApproval({ permission, pattern, scope }: Approval): string {
  return `${permission} \`${pattern}\` (this ${scope})`;
}

interface RuleLine {
  permissions: string[];
  entries: string[];
}

/**
 * Formats rules: one line per run of rules for a permission; adjacent permissions with equal rules share a line.
 * Precedence is preserved: the last match wins.
 */
export function describeRules(rules: Ruleset): string[] {
  const runs: Rule[][] = [];
  for (const rule of rules.filter((one, at) => !isReplaced(one, rules.slice(at + 1)))) {
    const last = runs.at(-1);
    if (last?.[0]?.permission === rule.permission) last.push(rule);
    else runs.push([rule]);
  }
  const runLines = runs.map((run) => ({
    permissions: [run[0]?.permission ?? "*"],
    entries: describeRun(run),
  }));
  const lines = mergeAlike(runLines).map(({ permissions, entries }) => {
    const names = permissions.map((name) => (isCatchAll(name) ? "everything" : name)).join(", ");
    return `- ${names}: ${limitItems(entries, patternsLimit).join(", ")}`;
  });
  return limitItems(lines, rulesLimit);
}

/** Whether a catch-all rule is overridden by a later one. */
function isReplaced({ permission, pattern }: Rule, later: Ruleset): boolean {
  return (
    isCatchAll(pattern) && later.some((one) => isCatchAll(one.pattern) && covers(one.permission, permission))
  );
}

/** Formats a run of rules; complete built-in lists are abbreviated by name. */
function describeRun(run: Ruleset): string[] {
  const entries: string[] = [];
  let next = 0;
  for (const [at, rule] of run.entries()) {
    if (at < next) continue;
    const list = findNamedRules(rule).find(({ rules }) => startsWith(run.slice(at), rules));
    const text = list?.name ?? describeRule(rule);
    if (entries.at(-1) !== text) entries.push(text);
    next = at + (list?.rules.length ?? 1);
  }
  return entries;
}

interface NamedRules {
  readonly name: string;
  readonly rules: Ruleset;
}

/** Returns the built-in lists that may start with the rule. */
function findNamedRules(first: Rule): readonly NamedRules[] {
  const outputs = /^cat (.+)\/\*$/.exec(first.pattern)?.[1];
  return [
    { name: "allow what only reads", rules: readingCommandRules() },
    ...(outputs === undefined
      ? []
      : [{ name: `allow readers of \`${outputs}\``, rules: outputRules("bash", outputs) }]),
  ];
}

function startsWith(rules: Ruleset, list: Ruleset): boolean {
  return list.every(({ permission, pattern, action }, at) => {
    const rule = rules[at];
    return rule?.permission === permission && rule.pattern === pattern && rule.action === action;
  });
}

function describeRule({ pattern, action, asksIfIrreversible }: Rule): string {
  if (asksIfIrreversible) return "allow what can be undone";
  return isCatchAll(pattern) ? action : `${action} \`${pattern}\``;
}

function mergeAlike(runs: readonly RuleLine[]): RuleLine[] {
  const merged: RuleLine[] = [];
  for (const { permissions, entries } of runs) {
    const last = merged.at(-1);
    if (last?.entries.join() === entries.join()) last.permissions.push(...permissions);
    else merged.push({ permissions: [...permissions], entries });
  }
  return merged;
}

function limitItems(items: readonly string[], limit: number): string[] {
  const more = items.length - limit;
  return more <= 0 ? [...items] : [...items.slice(0, limit), `and ${more} more`];
}

function describeLog(messages: readonly Message[]): string {
  const decided = messages.flatMap(({ parts }) =>
    parts.flatMap((part) =>
      part.type === "tool" && part.decision !== undefined ? [describeDecision(part.tool, part.decision)] : [],
    ),
  );
  if (decided.length === 0) return "No decisions in this session yet.";
  const more = decided.length - logLimit;
  return [...(more > 0 ? [`(${more} earlier ones)`] : []), ...decided.slice(-logLimit)].join("\n");
}

function describeDecision(tool: string, decision: CallDecision): string {
  const { outcome, by, permission, subject, rule, feedback } = decision;
  const what = subject === "" ? tool : `${tool}: ${permission} \`${subject}\``;
  const named = rule && ` (${rule.permission}: "${rule.pattern}" ${rule.action})`;
  const reason = feedback === undefined ? "" : `, because: ${feedback.replaceAll(/\s+/g, " ")}`;
  return `- ${outcome} by ${deciders[by]}: ${what}${named ?? ""}${reason}`;
}

const deciders: Readonly<Record<CallDecision["by"], string>> = {
  rules: "the rules",
  approval: "an approval",
  mode: "the session's approval setting",
  plugin: "a plugin",
  person: "you",
  failure: "a failed question",
  signal: "cancel",
  close: "the end of the session",
};
