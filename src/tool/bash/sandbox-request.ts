import { type PermissionRequest, sandboxPermission } from "../../permission/rule.ts";

/**
 * Returns the request to run a command line outside the sandbox, from what the line needs. Only rules and approvals for
 * `sandbox` by its name allow it. `asked` is why the
 * user is asked. "Always" offers the patterns of its commands, if each has one.
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
