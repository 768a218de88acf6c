import { readFileSync, statSync } from "node:fs";
import { toSlashes } from "../base/files/paths.ts";
import { findOwnConfigurationReason } from "../permission/own-configuration.ts";
import type { PermissionRequest } from "../permission/rule.ts";
import type { ShellContext, ShellEffect, ShellFacts, ShownText } from "../shell/facts.ts";
import { opaqueReasons } from "../shell/opaque-reason.ts";
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

/** Whether a command runs a shell that takes its commands from the input. */
function readsCommands(facts: ShellFacts): boolean {
  return facts.some((effect) => runsInput(effect) && effect.interpreter === undefined);
}

/**
 * Returns the permissions that a text on the input of a running program needs. A shell runs it: `typed` and `before` are
 * the facts of all its input as a command line, with and without the text. Other programs may do anything with it.
 */
export function toInputRequests(
  program: { command: string; facts: ShellFacts },
  input: { text: string; typed: ShellFacts; before: ShellFacts },
): PermissionRequest[] {
  const { command, facts } = program;
  const known = new Set(input.before.map(nameEffect));
  const commands = readsCommands(facts)
    ? toShellRequests(input.typed.filter((effect) => !known.has(nameEffect(effect))))
    : [];
  const readers = [...facts, ...input.typed].filter(runsInput);
  if (commands.length > 0 && readers.every(({ interpreter }) => interpreter === undefined)) return commands;
  const interpreter = readers.find((effect) => effect.interpreter !== undefined)?.interpreter;
  const subject = {
    text: `${command} <<< ${input.text.trimEnd()}`,
    also: [command],
    reason: `writes to the input of ${command}`,
    opaque: "its effect depends on the program that reads it",
    ...(interpreter !== undefined && { interpreter }),
  };
  return [...commands, { permission: "bash", subjects: [subject], always: [] }];
}

const runsInput = ({ opaque }: ShellFacts[number]): boolean => opaque === opaqueReasons.input.reason;

const nameEffect = ({ type, text }: ShellFacts[number]): string => `${type} ${text}`;

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
