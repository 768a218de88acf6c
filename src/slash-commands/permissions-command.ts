import type { Agent } from "../agent/agent.ts";
import type { ApprovalMode, Message } from "../message/message.ts";
import type { CallDecision } from "../message/part.ts";
import type { Approval, Approvals } from "../permission/approvals.ts";
import { outputRules, readingCommandRules } from "../permission/evaluate.ts";
import { modeNames } from "../permission/judge.ts";
import { covers, isCatchAll } from "../permission/pattern.ts";
import type { Rule, Ruleset } from "../permission/rule.ts";

/** What the command may use of a session. */
export interface PermissionsContext {
  readonly agent: Agent;
  readonly approvals: Approvals;
  readonly info: { readonly approval?: ApprovalMode | undefined };
  readonly transcript: { readonly messages: readonly Message[] };
}

/** Lines of rules, and of the log, that one answer holds. */
const rulesLimit = 60;
const logLimit = 50;
/** Patterns of one line of rules. */
const patternsLimit = 30;

const usage =
  "Say `/permissions` for the list, `/permissions revoke 1` to take an approval back, `/permissions keep 1` to keep one for the project, `/permissions log` for what was decided.";

/** `/permissions [revoke N | keep N | log]`. */
export async function runPermissions(session: PermissionsContext, rest: string): Promise<string> {
  const [verb = "", number = "", ...more] = rest.split(/\s+/).filter((word) => word !== "");
  if (verb === "") return describePermissions(session);
  if (verb === "log" && number === "") return describeLog(session.transcript.messages);
  const approval = more.length === 0 ? session.approvals.list()[Number(number) - 1] : undefined;
  if (verb !== "revoke" && verb !== "keep") return usage;
  if (approval === undefined) return `There is no approval "${number}". ${usage}`;
  return verb === "revoke" ? revoke(session.approvals, approval) : keep(session.approvals, approval);
}

async function revoke(approvals: Approvals, approval: Approval): Promise<string> {
  await approvals.revoke(approval);
  return `Taken back: ${describeApproval(approval)}. It is asked again from now on.`;
}

async function keep(approvals: Approvals, approval: Approval): Promise<string> {
  if (approval.scope === "project") return `${describeApproval(approval)} is kept already.`;
  if (approval.permission !== "bash" && approval.permission !== "edit")
    return `${describeApproval(approval)} holds for this session only: what lies outside the workspace or holds secrets is not kept.`;
  await approvals.add([approval], "project");
  await approvals.revoke(approval);
  return `Kept: ${describeApproval({ ...approval, scope: "project" })}.`;
}

function describePermissions({ agent, approvals, info }: PermissionsContext): string {
  const approved = approvals.list().map((approval, index) => `${index + 1}. ${describeApproval(approval)}`);
  const limits = (agent.limits ?? []).flatMap((limit) => [
    "",
    `**What ${agent.name} may do at most**, whatever those rules allow:`,
    "",
    ...describeRules(limit),
  ]);
  return [
    `**Rules of ${agent.name}**, in order; the last that fits decides:`,
    "",
    ...describeRules(agent.rules),
    ...limits,
    "",
    approved.length === 0 ? "**Nothing is approved** for good." : "**Approved**, where the rules ask:",
    "",
    ...approved,
    ...(approved.length === 0 ? [] : [""]),
    `The session is set to **${modeNames[info.approval ?? "ask"]}**. ${usage}`,
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
 * One line for each run of rules about one permission, and for permissions in a row of which the same is entries. The
 * lines decide as the rules do: the last that fits wins.
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
  const lines = mergeAlike(runLines).map(({ permissions, entries: entries }) => {
    const names = permissions.map((name) => (isCatchAll(name) ? "everything" : name)).join(", ");
    return `- ${names}: ${limitItems(entries, patternsLimit).join(", ")}`;
  });
  return limitItems(lines, rulesLimit);
}

/** Whether a rule for everything is replaced by a later one. */
function isReplaced({ permission, pattern }: Rule, later: Ruleset): boolean {
  return (
    isCatchAll(pattern) && later.some((one) => isCatchAll(one.pattern) && covers(one.permission, permission))
  );
}

/** Long lists of the program's own are named where they are there in full. */
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

/** The lists that may begin with the rule. */
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

function describeRule({ pattern, action }: Rule): string {
  return isCatchAll(pattern) ? action : `${action} \`${pattern}\``;
}

function mergeAlike(runs: readonly RuleLine[]): RuleLine[] {
  const merged: RuleLine[] = [];
  for (const { permissions, entries: entries } of runs) {
    const last = merged.at(-1);
    if (last?.entries.join() === entries.join()) last.permissions.push(...permissions);
    else merged.push({ permissions: [...permissions], entries: entries });
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
  if (decided.length === 0) return "Nothing was decided in this session yet.";
  const more = decided.length - logLimit;
  return [...(more > 0 ? [`(${more} earlier ones)`] : []), ...decided.slice(-logLimit)].join("\n");
}

function describeDecision(tool: string, { outcome, by, permission, subject, rule }: CallDecision): string {
  const what = subject === "" ? tool : `${tool}: ${permission} \`${subject}\``;
  const named = rule && ` (${rule.permission}: "${rule.pattern}" ${rule.action})`;
  return `- ${outcome} by ${deciders[by]}: ${what}${named ?? ""}`;
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
