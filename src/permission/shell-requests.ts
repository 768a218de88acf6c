import type { ShellEffect, ShellFacts } from "../shell/facts.ts";
import type { PermissionRequest } from "./rule.ts";

const permissions: Readonly<Record<ShellEffect["type"], string>> = {
  run: "bash",
  write: "edit",
  read: "read",
  outside: "external_directory",
};

/** Returns the permissions that a command line needs, one for each effect. */
export function toShellRequests(facts: ShellFacts): PermissionRequest[] {
  return facts.map(({ type, similar, critical, ...subject }) => ({
    permission: permissions[type],
    subjects: [{ ...subject, ...(critical !== undefined && { confirm: critical }) }],
    always: similar,
    ofCommand: true,
  }));
}
