import { parse } from "unbash";
import { messageOf } from "../../base/errors.ts";
import { hasInvisible } from "../invisible.ts";
import type { PermissionRequest } from "../rule.ts";
import type { ShellContext, ShellPart } from "./part.ts";
import { ShellWalk } from "./walk.ts";

/** Longer command lines are not read but asked for as a whole. */
export const commandLimit = 20_000;

/**
 * What a command line needs permission for: `bash` for each simple command in it, and `edit`, `read` and
 * `external_directory` for the files and folders that it names. Touches nothing but `resolve`; never throws: what
 * cannot be read becomes a request that only a rule for everything allows.
 */
export function analyzeShell(command: string, context: ShellContext): PermissionRequest[] {
  return explainShell(command, context).map(({ permission, always, ...subject }) => {
    return { permission, subjects: [subject], always };
  });
}

/** The same as {@link analyzeShell}, with the reason for each part. */
export function explainShell(command: string, context: ShellContext): ShellPart[] {
  const refusal = refuse(command);
  if (refusal !== undefined) return asWhole(command, refusal);
  try {
    const walk = new ShellWalk(context);
    walk.script(parse(command), command, [context.start ?? context.cwd]);
    const runs = walk.parts.some(({ permission, steers }) => permission === "bash" && !steers);
    return runs ? walk.parts : [bashPart(command), ...walk.parts.filter(({ steers }) => !steers)];
  } catch (error) {
    return asWhole(command, `it cannot be read as shell text (${messageOf(error)})`);
  }
}

function refuse(command: string): string | undefined {
  if (command.length > commandLimit) return `it is longer than ${commandLimit} characters`;
  if (hasInvisible(command)) return "it contains control characters or invisible ones";
  return undefined;
}

/** A line that runs no command but redirects or assigns is judged by its own text. */
function bashPart(command: string): ShellPart {
  return { permission: "bash", text: command.trim(), reason: "runs in the shell", always: [] };
}

/** Nothing is known: it may run, read and write anything anywhere. */
function asWhole(command: string, opaque: string): ShellPart[] {
  const reason = `may do anything: ${opaque}`;
  const permissions = ["bash", "external_directory", "edit", "read"] as const;
  return permissions.map((permission) => ({ permission, text: command, opaque, reason, always: [] }));
}
