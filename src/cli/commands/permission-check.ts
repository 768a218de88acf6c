import { judge, type Authority, type Judgement } from "../../permission/judge.ts";
import { showInvisible } from "../../permission/invisible.ts";
import { explainShell } from "../../shell/analysis.ts";
import type { Action, Rule } from "../../permission/rule.ts";
import type { ShellContext } from "../../shell/part.ts";

/** The decision on one part of a command line. */
export interface CheckedPart {
  permission: string;
  text: string;
  action: Action;
  /** Absent when no rule matched. */
  rule?: Rule;
  /** What the part does, and why this was decided. */
  reason: string;
}

export interface CheckedCommand {
  command: string;
  /** The strictest action of its parts. */
  action: Action;
  parts: CheckedPart[];
}

const strictness: Record<Action, number> = { allow: 0, ask: 1, deny: 2 };

/** Evaluates a command line as a running agent would before asking the user. Does not run it. */
export function checkCommand(command: string, context: ShellContext, authority: Authority): CheckedCommand {
  const parts = explainShell(command.trim(), context).flatMap(
    ({ permission, always, ...subject }): CheckedPart[] => {
      const judgement = judge({ permission, subjects: [subject], always }, authority);
      const { action, rule } = judgement;
      if (subject.isAlternativeReading === true && action !== "deny") return [];
      const part = {
        permission,
        text: subject.text,
        action,
        ...(rule && { rule }),
        reason: `${subject.reason}; ${reasonOf(judgement)}`,
      };
      return [part];
    },
  );
  const action = parts.reduce<Action>(
    (strictest, part) => (strictness[part.action] > strictness[strictest] ? part.action : strictest),
    "allow",
  );
  return { command, action, parts };
}

/** Formats the decision: a line for the command and one for each part. */
export function describeCheck({ command, action, parts }: CheckedCommand): string {
  const lines = parts.map(
    (part) => `  ${part.action.padEnd(5)} ${part.permission.padEnd(18)} ${part.text}  (${part.reason})`,
  );
  return [`${action.padEnd(5)} ${command}`, ...lines].map(showInvisible).join("\n");
}

function reasonOf({ reason, rule, by }: Judgement): string {
  return by === "rules" && rule === undefined ? `${reason}, which asks` : reason;
}
