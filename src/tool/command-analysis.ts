import type { PermissionRequest } from "../permission/rule.ts";
import { toInputRequests, toShellRequests } from "../permission/shell-requests.ts";
import type { ShownText } from "../shell/facts.ts";
import { createShellContext, toWindowsPath } from "../workspace/shell-context.ts";
import type { ShellFolders } from "./paths.ts";

/** Analysis of a command line, without running it. */
export interface ShellAnalysis {
  /** Returns the permissions that it needs. */
  readonly analyze: (command: string, folders: ShellFolders) => Promise<PermissionRequest[]>;
  /** Returns the files whose text it prints. */
  readonly findShown: (command: string, folders: ShellFolders) => Promise<readonly ShownText[]>;
}

/** A text for the input of a running program. */
export interface TypedInput {
  readonly command: string;
  /** The earlier input of the program. */
  readonly earlier: string;
  readonly text: string;
}

/** The shell grammar is large: it loads with the first command. */
const loadEngine = () => import("../shell/analysis.ts");

/** Analyzes command lines with the files and folders on the disk. */
export const shellAnalysis: ShellAnalysis = {
  analyze: async (command, folders) => {
    const { analyzeShell } = await loadEngine();
    return toShellRequests(analyzeShell(command, createShellContext(folders)));
  },
  findShown: async (command, folders) => {
    const { findShownText } = await loadEngine();
    const shown = findShownText(command, createShellContext(folders));
    if (process.platform !== "win32") return shown;
    return shown.map((text) => ({ ...text, path: toWindowsPath(text.path), base: toWindowsPath(text.base) }));
  },
};

/** Returns the permissions that a text on the input of a running command needs. */
export async function analyzeInput(
  { command, earlier, text }: TypedInput,
  folders: ShellFolders,
): Promise<PermissionRequest[]> {
  const { analyzeShell } = await loadEngine();
  const context = createShellContext(folders);
  const analyzeLine = (line: string) => analyzeShell(line, context);
  const input = { text, before: analyzeLine(earlier), typed: analyzeLine(earlier + text) };
  return toInputRequests({ command, facts: analyzeLine(command) }, input);
}

/** Loads the shell grammar and parses one line, which makes the next parse three times as fast. Reads no files. */
export async function warmUpAnalysis(): Promise<void> {
  const { analyzeShell } = await loadEngine();
  analyzeShell('cd src && git log --oneline -- "$1" | head -n 5 > out.txt; ls *.md', {
    cwd: "/",
    roots: ["/"],
    home: "/",
    resolve: (path) => path,
    findCriticalReason: () => undefined,
    list: () => [],
  });
}
