import { evaluate } from "../../permission/evaluate.ts";
import {
  type Action,
  connectPermission,
  type PermissionRequest,
  sandboxPermission,
} from "../../permission/rule.ts";
import type { RunContext } from "../tool.ts";

/**
 * Returns the request to run a command line outside the sandbox, from what the line needs. Only rules and approvals for
 * `sandbox` by its name allow it. `asked` is why the user is asked. "Always" offers the patterns of its commands, if each
 * has one.
 */
export function toSandboxRequest(
  requests: readonly PermissionRequest[],
  commandLine: string,
  asked?: string,
): PermissionRequest {
  const commands = requests.filter(({ permission }) => permission === "bash");
  const subjects = commands.flatMap((command) => command.subjects);
  const canRemember = commands.length > 0 && commands.every(({ always }) => always.length > 0);
  return {
    permission: sandboxPermission,
    subjects: (subjects.length > 0 ? subjects : [{ text: commandLine }]).map((subject) => ({
      ...subject,
      ...(asked !== undefined && { asked }),
    })),
    always: canRemember ? [...new Set(commands.flatMap(({ always }) => always))] : [],
    byNameOnly: true,
  };
}

/** Returns the request to connect to hosts from the sandbox. Only rules and approvals for `connect` by its name allow it. */
export function toConnectRequest(hosts: readonly string[], asked?: string): PermissionRequest {
  return {
    permission: connectPermission,
    subjects: hosts.map((text) => ({ text, ...(asked !== undefined && { asked }) })),
    always: hosts,
    byNameOnly: true,
  };
}

/** Returns what rules and approvals say about a connection from the sandbox. */
export function judgeConnection(host: string, run: RunContext): Action {
  const request = toConnectRequest([host]);
  if (run.isAllowed([request])) return "allow";
  const rules = run.rules?.() ?? [];
  return rules.some((list) => evaluate(request, list).action === "deny") ? "deny" : "ask";
}
