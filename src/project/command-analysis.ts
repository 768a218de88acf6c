import { toInputRequests, toShellRequests } from "../permission/shell-requests.ts";
import { analyzeShell, findShownText } from "../shell/analysis.ts";
import type { ShownText } from "../shell/facts.ts";
import type { PermissionRequest } from "../permission/rule.ts";
import type { TypedInput } from "../tool/job/job.ts";
import type { ShellFolders } from "../tool/paths.ts";
import { createShellContext } from "../workspace/shell-context.ts";

// Imports the shell grammar, which is large: load this file when a command is analyzed.

export function analyze(command: string, folders: ShellFolders): PermissionRequest[] {
  return toShellRequests(analyzeShell(command, createShellContext(folders)));
}

export function findShown(command: string, folders: ShellFolders): readonly ShownText[] {
  return findShownText(command, createShellContext(folders));
}

/** Analyzes a line without looking at the disk. */
export function analyzeSample(): void {
  analyzeShell('cd src && git log --oneline -- "$1" | head -n 5 > out.txt; ls *.md', {
    cwd: "/",
    roots: ["/"],
    home: "/",
    resolve: (path) => path,
    findCriticalReason: () => undefined,
    list: () => [],
  });
}

/** Returns the permissions that a text on the input of a running command needs. */
export function analyzeInput(
  { command, earlier, text }: TypedInput,
  folders: ShellFolders,
): PermissionRequest[] {
  const context = createShellContext(folders);
  const analyzeLine = (line: string) => analyzeShell(line, context);
  const input = { text, before: analyzeLine(earlier), typed: analyzeLine(earlier + text) };
  return toInputRequests({ command, facts: analyzeLine(command) }, input);
}
