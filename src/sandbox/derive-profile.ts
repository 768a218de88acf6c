import { existsSync, lstatSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, delimiter, dirname, join, normalize, resolve } from "node:path";
import type { PermissionRequest, Subject } from "../permission/rule.ts";
import { listCredentialPlaces, listKeysOf } from "./credentials.ts";
import { findGitFolders } from "./git-folders.ts";
import { isReplaced, isWithin, type SandboxProfile } from "./profile.ts";
import { addRepository, type ProtectedFiles } from "./protected-files.ts";

/** The folders of a session. */
export interface SandboxFolders {
  readonly cwd: string;
  readonly roots: readonly string[];
  readonly worktree: string | undefined;
  readonly home: string;
  /** The program's own configuration and data, which are hidden. */
  readonly own: readonly string[];
}

/** The user configuration's additions to every profile; paths are absolute. */
export interface SandboxAdditions {
  readonly writable: readonly string[];
  readonly hidden: readonly string[];
  readonly network: boolean;
  readonly hosts: readonly string[];
}

/** An allowed command line and its environment. */
export interface AllowedCommand {
  /** Everything that it needs; all of it was allowed. */
  readonly requests: readonly PermissionRequest[];
  /** Where it starts. */
  readonly start: string;
  /** The file of its program, if it is known. */
  readonly program?: string | undefined;
  /** Files and folders that stay visible in hidden folders, because it starts from them. */
  readonly reads?: readonly string[] | undefined;
  readonly folders: SandboxFolders;
  readonly additions: SandboxAdditions;
  readonly found: ProtectedFiles;
  /** Absolute paths that rules for `read` name. */
  readonly unreadable: readonly string[];
  readonly temporary: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Derives what a command line may do from what was allowed:
 * - it writes the workspace except what is always confirmed, the temporary folder, and paths that were allowed by name;
 * - it reads everything except keys and what rules for `read` protect, unless that was allowed by name, or is the key of a program that
 *   was allowed to do what cannot be undone;
 * - it has network, or single hosts, only by configuration, or if something was allowed that cannot be undone, such as a push.
 *
 * The system therefore refuses everything that the analysis of the line did not see.
 */
export function deriveProfile(command: AllowedCommand): SandboxProfile {
  const { requests, folders, additions, found } = command;
  const { cwd, roots, home } = folders;
  const reads = resolveExisting(command.reads ?? []);
  const programs = command.program === undefined ? [] : [command.program];
  const written = listPaths(requests, "edit", cwd);
  const read = listPaths(requests, "read", cwd);
  const git = findGitFolders(folders.worktree, roots);
  const outsideGit = { pinned: [] as string[], readOnly: [] as string[] };
  for (const folder of git) addRepository(folder, true, outsideGit);
  const outside = written.filter((path) => !roots.some((root) => isWithin(path, root)));
  const writable = [
    ...roots,
    ...git,
    ...additions.writable,
    ...outside.filter((path) => !isPrivate(path)).flatMap((path) => findWritableTarget(path, home) ?? []),
  ];
  const isConfirmed = (path: string) =>
    written.some((allowed) => isWithin(path, allowed) || isWithin(allowed, path));
  const isConfirmedLine = requests.some(isIrreversible);
  // Writing in the workspace needs no answer; a line that deletes what cannot be restored does.
  const keys = resolveExisting(
    listIrreversiblePrograms(requests).flatMap((program) => listKeysOf(program, home, command.env)),
  );
  const allowed = [...resolveExisting([...read, ...(isConfirmedLine ? written : outside)]), ...keys];
  const hidden = [
    ...found.hidden,
    ...command.unreadable,
    ...additions.hidden,
    ...folders.own,
    ...listCredentialPlaces(home, command.env),
  ];
  return {
    writable: resolveExisting(writable),
    pinned: resolveExisting([...found.pinned, ...outsideGit.pinned]),
    readOnly: resolveExisting([...found.readOnly, ...outsideGit.readOnly]).filter(
      (path) => !isConfirmed(path),
    ),
    hidden: resolveExisting(hidden)
      .filter((path) => !allowed.includes(path) && !isNeeded(path, command))
      .flatMap((path) => hideAround(path, [...reads, ...allowed])),
    temporary: command.temporary,
    visible: [
      ...resolveExisting([home, command.start, ...programs, ...reads]),
      ...keys,
      ...[...programs, ...listProgramFolders(command.env["PATH"])].flatMap(
        (path) => findLinkedPlace(path) ?? [],
      ),
    ],
    network: additions.network || isConfirmedLine,
    hosts: additions.hosts,
  };
}

function listPaths(requests: readonly PermissionRequest[], permission: string, cwd: string): string[] {
  return requests
    .filter((request) => request.permission === permission)
    .flatMap(({ subjects }) => subjects)
    .flatMap(listNames)
    .map((path) => resolve(cwd, path));
}

function listNames({ text, names, glob, opaque, isAlternativeReading }: Subject): readonly string[] {
  if (opaque !== undefined || isAlternativeReading === true) return [];
  return glob === true ? (names ?? []) : [text];
}

/**
 * Returns what to make writable for a path outside the workspace: its folder, as programs replace files by renaming; in
 * the home folder and above it only the file itself. Undefined if there is nothing that could be made writable alone.
 */
function findWritableTarget(path: string, home: string): string | undefined {
  const kind = statSync(path, { throwIfNoEntry: false });
  if (kind?.isDirectory() === true) return path;
  const folder = dirname(path);
  if (!isWithin(home, folder)) return folder;
  return kind === undefined ? undefined : path;
}

/** On Linux a command has its own /tmp. */
function isPrivate(path: string): boolean {
  return process.platform === "linux" && isWithin(path, "/tmp");
}

/** Nothing may hide a folder in which the command works. */
function isNeeded(path: string, { start, folders }: AllowedCommand): boolean {
  return [start, ...folders.roots].some((folder) => isWithin(folder, path));
}

/** Returns what to hide of a hidden path if some of the files in it stay visible. */
function hideAround(path: string, shown: readonly string[]): string[] {
  if (!shown.some((one) => one !== path && isWithin(one, path))) return [path];
  return readdirSync(path)
    .map((name) => join(path, name))
    .filter((child) => !shown.includes(child))
    .flatMap((child) => hideAround(child, shown));
}

/** Returns the folders of the PATH that are in replaced ones: version managers link their programs there. */
function listProgramFolders(path = ""): string[] {
  const isWhole = (folder: string) => folder === "/tmp" || folder === "/run";
  return path.split(delimiter).filter((folder) => isReplaced(folder) && !isWhole(folder));
}

/** Returns the first link on the way to a path in a replaced folder, else the path; undefined if nothing is there. */
function findLinkedPlace(path: string): string | undefined {
  if (!isReplaced(path) || !existsSync(path)) return undefined;
  const parts = normalize(path).split("/");
  const ancestors = parts.map((_, index) => parts.slice(0, index + 1).join("/")).slice(2);
  return ancestors.find((one) => lstatSync(one).isSymbolicLink()) ?? path;
}

/** Returns the names of programs whose commands cannot be undone, without their folders. */
function listIrreversiblePrograms(requests: readonly PermissionRequest[]): string[] {
  return requests
    .flatMap(({ subjects }) => subjects)
    .filter(({ irreversible }) => irreversible !== undefined)
    .map(({ text }) => basename(text.split(" ", 1)[0] ?? ""));
}

function isIrreversible({ subjects }: PermissionRequest): boolean {
  return subjects.some(({ irreversible }) => irreversible !== undefined);
}

/** Returns the real paths of those that exist, each once. */
function resolveExisting(paths: readonly string[]): string[] {
  const existing = paths.flatMap((path) => {
    try {
      return realpathSync.native(path);
    } catch {
      return [];
    }
  });
  return [...new Set(existing)];
}
