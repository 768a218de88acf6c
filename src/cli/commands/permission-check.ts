import { judge, strictness, type Authority, type Judgement } from "../../permission/judge.ts";
import { showInvisible } from "../../base/text/invisible.ts";
import { analyzeShell } from "../../shell/analysis.ts";
import type { Action, PermissionRequest, Rule } from "../../permission/rule.ts";
import { toShellRequests } from "../../tool/command-analysis.ts";
import type { ShellContext, ShellEffect } from "../../shell/facts.ts";

/** The decision on one part of a command line. */
export interface CheckedPart {
  permission: string;
  text: string;
  action: Action;
  /** Absent when no rule matched. */
  rule?: Rule;
  /** The effect of the part, whether it can be undone, and the reason for the decision. */
  reason: string;
  /** Why the part cannot be undone: "publishes a package". */
  irreversible?: string;
}

export interface CheckedCommand {
  command: string;
  /** The strictest action of its parts. */
  action: Action;
  parts: CheckedPart[];
}

/** Evaluates a command line as a running agent would before asking the user. Does not run it. */
export function checkCommand(command: string, context: ShellContext, authority: Authority): CheckedCommand {
  const parts = analyzeShell(command.trim(), context).flatMap((effect): CheckedPart[] =>
    toShellRequests([effect]).flatMap((request) => checkEffect(effect, request, authority)),
  );
  const action = parts.reduce<Action>(
    (strictest, part) => (strictness[part.action] > strictness[strictest] ? part.action : strictest),
    "allow",
  );
  return { command, action, parts };
}

function checkEffect(effect: ShellEffect, request: PermissionRequest, authority: Authority): CheckedPart[] {
  const judgement = judge(request, authority);
  const { action, rule } = judgement;
  const { irreversible } = effect;
  if (effect.isAlternativeReading === true && action !== "deny") return [];
  const undo = judgement.irreversible !== undefined ? "" : describeUndo(effect);
  const reason = `${effect.reason}${undo}; ${reasonOf(judgement)}`;
  const part = { permission: request.permission, text: effect.text, action, ...(rule && { rule }), reason };
  return [irreversible === undefined ? part : { ...part, irreversible }];
}

function describeUndo({ irreversible, hasUnknownEffects }: ShellEffect): string {
  if (irreversible !== undefined) return `; cannot be undone: ${irreversible}`;
  return hasUnknownEffects ? "; whether it can be undone is unknown" : "";
}

/** Formats the decision: a line for the command and one for each part. */
export function describeCheck({ command, action, parts }: CheckedCommand): string {
  const lines = parts.map(
    (part) => `  ${part.action.padEnd(5)} ${part.permission.padEnd(18)} ${part.text}  (${part.reason})`,
  );
  return [`${action.padEnd(5)} ${command}`, ...lines].map(showInvisible).join("\n");
}

function reasonOf({ reason, rule, by, irreversible }: Judgement): string {
  if (irreversible !== undefined) return `${reason}, and no rule of yours allows it`;
  return by === "rules" && rule === undefined ? `${reason}, which asks` : reason;
}
