import { readFileSync, statSync } from "node:fs";
import { toSlashes } from "../base/files/paths.ts";
import { findOwnConfigurationReason } from "../permission/own-configuration.ts";
import type { PermissionRequest } from "../permission/rule.ts";
import { toInputRequests, toShellRequests } from "../permission/shell-requests.ts";
import type { ShellContext, ShownText } from "../shell/facts.ts";
import { dialectOf } from "../shell/syntax/dialect.ts";
import { realPathSync } from "../workspace/files/real-path.ts";
import { listNamesSync } from "../workspace/folder-names.ts";
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

/** Context for analyzing a command line. `start` is `cwd` by default. */
export function createShellContext(
  folders: Omit<ShellFolders, "start"> & { start?: string },
  platform = process.platform,
): ShellContext {
  const { cwd, start, roots, home, shell } = folders;
  const context = {
    cwd,
    ...(start !== undefined && { start }),
    roots,
    home,
    dialect: dialectOf(shell),
    resolve: realPathSync,
    findCriticalReason: findOwnConfigurationReason,
    list: listNamesSync,
    readText,
  };
  return platform === "win32" ? toWindowsContext(context) : context;
}

/** Converts to and from the paths of Git's bash, in which `C:\Users` is `/c/Users`. */
function toWindowsContext(
  native: Required<Omit<ShellContext, "start" | "readPath" | "showPath">> & { start?: string },
) {
  const { start, dialect, resolve, findCriticalReason, list, readText } = native;
  const drive = /^[a-z]:/i.exec(native.cwd)?.[0].toLowerCase();
  return {
    cwd: toShellPath(native.cwd),
    ...(start !== undefined && { start: toShellPath(start) }),
    roots: native.roots.map(toShellPath),
    home: toShellPath(native.home),
    dialect,
    // `D:a` is below the current folder of that drive: unknown, unless it is the drive of `cwd`.
    readPath: (text) => {
      const [, other, rest = ""] = /^([a-z]:)([^\s\\/].*)$/is.exec(text) ?? [];
      if (other === undefined) return toShellPath(text);
      return toShellPath(other.toLowerCase() === drive ? rest : `${other}/${rest}`);
    },
    showPath: (path) => toSlashes(toWindowsPath(path), "\\"),
    resolve: (path) => toShellPath(resolve(toWindowsPath(path))),
    findCriticalReason: (path, below) => findCriticalReason(toWindowsPath(path), below),
    list: (folder) => list(toWindowsPath(folder)),
    readText: (path) => readText(toWindowsPath(path)),
  } satisfies ShellContext;
}

function toShellPath(path: string): string {
  return toSlashes(path, "\\").replace(
    /^([a-z]):(?=\/|$)/i,
    (_, letter: string) => `/${letter.toLowerCase()}`,
  );
}

export function toWindowsPath(path: string): string {
  const drive = path.replace(/^\/([a-z])(?=\/|$)/i, (_, letter: string) => `${letter.toUpperCase()}:`);
  return (/^[A-Z]:$/.test(drive) ? `${drive}/` : drive).replaceAll("/", "\\");
}

/** Longer files are not read. */
const textLimitBytes = 256 * 1024;

function readText(path: string): string | undefined {
  try {
    const found = statSync(path);
    return found.isFile() && found.size <= textLimitBytes ? readFileSync(path, "utf8") : undefined;
  } catch {
    return undefined;
  }
}
