import type { PermissionRequest } from "../permission/rule.ts";
import { toShellRequests } from "../permission/shell-requests.ts";
import { analyzeShell, findShownText } from "../shell/analysis.ts";
import type { ShownText } from "../shell/facts.ts";
import type { ShellFolders } from "../tool/bash/bash.ts";
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
