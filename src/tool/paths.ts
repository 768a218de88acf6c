import { toSlashes } from "../base/files/paths.ts";
import { titleOfPath } from "../base/text/call-titles.ts";
import { basename, dirname, sep } from "node:path";
import { readdir } from "node:fs/promises";
import { distance } from "fastest-levenshtein";
import { codeOf, messageOf, UserError } from "../base/errors.ts";
import { isOwnConfiguration } from "../permission/own-configuration.ts";
import type { PermissionRequest, Subject } from "../permission/rule.ts";
import {
  findForbiddenName,
  isInside,
  isKernelPath,
  formatPath,
  resolvePath,
  toAbsolute,
} from "../workspace/paths.ts";
import type { ResolvedPath } from "../workspace/paths.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { findNearPaths, isPlainPath, nearPathNote, type NearPath, toPlainPath } from "./near-path.ts";
import { ToolFailure } from "./tool.ts";
import type { Access, PreparedCall, ToolContext } from "./tool.ts";

/** Other names of a file's path: keys of other agents' tools, which models use. */
export const otherNamesOfPath: readonly string[] = [
  "path",
  "file",
  "filename",
  "file_path",
  "file_name",
  "absolute_path",
  "target_file",
  "filepath",
  "relative_path",
  "uri",
];

type InWorkspace = Pick<ToolContext, "workspace">;

/** Resolves a path from the model. Throws {@link ToolFailure} for devices, sockets and the like. */
export async function resolveToolPath({ workspace }: InWorkspace, raw: string): Promise<ResolvedPath> {
  const resolved = await resolveOrFail(raw, workspace);
  if (resolved.kind !== "special") return resolved;
  throw new ToolFailure(
    `${raw} is a device, a pipe, a socket or a file of the kernel. Give the path of a file or folder.`,
  );
}

/**
 * Returns the permissions to read or edit the path:
 *
 * - the permission itself, for the path relative to the working directory (absolute if outside), with `/`;
 * - `external_directory` for its folder, if it is under no root.
 *
 * Throws {@link ToolFailure} for an edit of a name that Windows forbids.
 */
export function pathPermissions(
  { workspace }: InWorkspace,
  resolved: ResolvedPath,
  permission: "read" | "edit",
): PermissionRequest[] {
  const forbidden = permission === "edit" ? findForbiddenName(resolved.path) : undefined;
  if (forbidden !== undefined)
    throw new ToolFailure(`${forbidden} Nothing was written; give a path without it.`);
  const own: PermissionRequest =
    permission === "edit" && [resolved.path, resolved.unresolved].some((path) => isOwnConfiguration(path))
      ? {
          permission,
          subjects: [{ ...subjectOf(workspace, resolved), confirm: ownConfigurationReason }],
          always: [],
        }
      : requestFor(permission, subjectOf(workspace, resolved));
  return [own, ...externalPermissions({ workspace }, resolved)];
}

/**
 * Returns the permissions for a call with paths outside the workspace, whether they exist or not. Undefined if none is
 * outside. `own` adds further permissions; `permission` is set if the call reads or edits the paths.
 */
export async function getOutsideAccess(
  context: InWorkspace,
  raws: readonly (string | undefined)[],
  { title, verb = "", permission, own = () => [] }: OutsideUse,
): Promise<Access | undefined> {
  const paths = await Promise.all(raws.map((raw) => resolveUnseen(context, raw?.trim() || ".")));
  if (!paths.some((resolved) => isOutside(context, resolved))) return undefined;
  const needed = paths.flatMap((resolved) =>
    permission === undefined
      ? externalPermissions(context, resolved)
      : pathPermissions(context, resolved, permission),
  );
  return {
    title: title ?? titleOfPath(verb, paths.map((resolved) => titleOf(context, resolved)).join(", ")),
    locations: paths.map(({ path }) => ({ path })),
    permissions: [...paths.flatMap(own), ...needed],
  };
}

interface OutsideUse {
  /** Defaults to the verb and the paths. */
  readonly title?: string;
  readonly verb?: string;
  readonly permission?: "read" | "edit";
  readonly own?: (resolved: ResolvedPath) => PermissionRequest[];
}

/** Returns `external_directory` if the path is under no root. */
export function externalPermissions({ workspace }: InWorkspace, resolved: ResolvedPath): PermissionRequest[] {
  return isInside(resolved.path, workspace.roots) ? [] : [externalRequest(workspace, resolved)];
}

/** Whether the path is outside the workspace. Kernel paths are excluded: they are refused by name. */
function isOutside({ workspace }: InWorkspace, { path, unresolved }: ResolvedPath): boolean {
  const { roots } = workspace;
  return !isInside(path, roots) && !isKernelPath(isInside(unresolved, roots) ? path : unresolved);
}

/** Resolves a path without revealing errors: links that cannot be followed are reported later. */
async function resolveUnseen({ workspace }: InWorkspace, raw: string): Promise<ResolvedPath> {
  try {
    return await resolvePath(raw, workspace);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const unresolved = await explainUserErrors(() => toAbsolute(raw, workspace));
    return { path: unresolved, unresolved, exists: false, kind: "missing", size: 0 };
  }
}

/** Returns the permission to read a file found by a search, by its absolute real path. */
export function readRequest({ workspace }: InWorkspace, path: string): PermissionRequest {
  const text = formatPath(workspace.cwd, path);
  return { permission: "read", subjects: [{ text, also: otherSpellings(text, [path]) }], always: [] };
}

/** Returns the permission to search by a pattern; in the folder of stored outputs, rules match the path. */
export function searchRequest(
  { workspace }: InWorkspace,
  permission: "grep" | "glob",
  pattern: string,
  path: string,
): PermissionRequest {
  const isOutput = isInside(path, [workspace.outputFolder]);
  const subject = isOutput ? { text: toSlashes(path), also: [pattern] } : { text: pattern };
  return { permission, subjects: [subject], always: isOutput ? [] : ["*"] };
}

/**
 * Creates an edit that fails with a message about a file's content, which the model must not read without
 * permission.
 */
export function failAfterReading(
  context: InWorkspace,
  resolved: ResolvedPath,
  problem: string,
): PreparedCall {
  return {
    title: titleOfPath("Edit", titleOf(context, resolved)),
    locations: [{ path: resolved.path }],
    permissions: pathPermissions(context, resolved, "read"),
    run: () => Promise.reject(new ToolFailure(problem)),
  };
}

/** The path for titles and results: relative to the working directory if inside. */
export function titleOf({ workspace }: InWorkspace, resolved: ResolvedPath): string {
  return formatPath(workspace.cwd, resolved.path);
}

/** A path to read: as asked for, or the only one that may be meant, with a note. */
export interface PathToRead extends NearPath {
  readonly note?: string;
}

/**
 * Resolves a path to read. A missing path is read as the only one of the workspace that it can mean. Throws {@link
 * ToolFailure} if there is none or more than one.
 */
export async function resolvePathToRead(context: ToolContext, raw: string): Promise<PathToRead> {
  const resolved = await resolveToolPath(context, raw);
  if (resolved.exists) return { resolved };
  context.seen.forget(resolved.path);
  const [near, ...others] = await findNearPaths(context, raw, context.signal);
  if (near === undefined || others.length > 0)
    throw new ToolFailure(await missingPathMessage(context, resolved, raw));
  return { ...near, note: nearPathNote(context, near.resolved, raw) };
}

/**
 * Throws {@link ToolFailure} for the path of a new file that is written like no path, or that names lines of an existing
 * file: no other path is written without being asked for.
 */
export async function requirePlainPath(context: ToolContext, raw: string): Promise<void> {
  const plain = toPlainPath(raw);
  const isNumbered = /.(?::\d+(?:[-:]\d+)?|#L\d+(?:-L?\d+)?)$/.test(plain);
  const [near] = isNumbered ? await findNearPaths(context, raw, context.signal) : [];
  if (isPlainPath(raw) && near === undefined) return;
  const suggestion = near === undefined ? plain : titleOf(context, near.resolved);
  throw new ToolFailure(
    `${JSON.stringify(raw)} is not a plain path. Did you mean ${suggestion}? ${writeHint}`,
  );
}

const writeHint = "Nothing was written; call the tool again with that path.";

/** Message for a missing path, with up to three others that may be meant. */
export async function missingPathMessage(
  context: ToolContext,
  resolved: ResolvedPath,
  raw: string,
): Promise<string> {
  const { workspace } = context;
  const suggestions = await findNearPaths(context, raw, context.signal);
  if (suggestions.length !== 1 && /[*?]/.test(raw))
    return `${raw} does not exist. To find files by a pattern use glob.`;
  if (suggestions.length > 0) {
    const shown = suggestions.slice(0, suggestionLimit).map((near) => titleOf(context, near.resolved));
    return `${raw} does not exist. Did you mean ${shown.join(" or ")}?`;
  }
  const folder = dirname(resolved.path);
  // Names outside the workspace must not be revealed before approval.
  const near = isInside(folder, workspace.roots)
    ? await findSimilarNames(folder, basename(resolved.path))
    : [];
  if (near.length === 0) return `${raw} does not exist. Look for it with glob or list.`;
  const names = near.map((name) => formatPath(workspace.cwd, `${folder}${sep}${name}`));
  return `${raw} does not exist. Did you mean ${names.join(" or ")}?`;
}

const ownConfigurationReason = "it changes the agent's own configuration or what git runs";

function resolveOrFail(raw: string, workspace: Workspace): Promise<ResolvedPath> {
  return explainUserErrors(() => resolvePath(raw, workspace));
}

async function explainUserErrors<T>(task: () => T | Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    if (error instanceof UserError) throw new ToolFailure(messageOf(error), { cause: error });
    throw error;
  }
}

/** Subject with all spellings, so that rules for the absolute path or for the link apply too. */
function subjectOf({ cwd, roots }: Workspace, { path, unresolved }: ResolvedPath): Subject {
  const text = formatPath(cwd, path);
  const named = isInside(path, roots) ? {} : { named: formatPath(cwd, unresolved) };
  return { text, also: otherSpellings(text, [path, unresolved, formatPath(cwd, unresolved)]), ...named };
}

function requestFor(permission: string, subject: Subject): PermissionRequest {
  return { permission, subjects: [subject], always: isLiteral(subject.text) ? [subject.text] : [] };
}

function externalRequest({ home }: Workspace, { path, unresolved, kind }: ResolvedPath): PermissionRequest {
  const folder = kind === "directory" ? path : dirname(path);
  const text = toSlashes(folder);
  return {
    permission: "external_directory",
    subjects: [{ text, also: otherSpellings(text, [path, unresolved]), named: toSlashes(unresolved) }],
    always: isTooWide(folder, home) || !isLiteral(text) ? [] : [text, `${text}/*`],
  };
}

/** Whether the folder is the root, the home folder or above it; these are never offered as a whole. */
function isTooWide(folder: string, home: string): boolean {
  return dirname(folder) === folder || isInside(home, [folder]);
}

function otherSpellings(text: string, spellings: readonly string[]): string[] {
  return [...new Set(spellings.map((path) => toSlashes(path)))].filter((spelling) => spelling !== text);
}

/** Whether the name has no wildcards, and so allows only itself when offered as a pattern. */
function isLiteral(text: string): boolean {
  return !/[*?]/.test(text);
}

const suggestionLimit = 3;

async function findSimilarNames(folder: string, name: string): Promise<string[]> {
  const wanted = name.toLowerCase();
  const ranked = (await listNames(folder)).map((other) => ({
    other,
    apart: nameDistance(wanted, other.toLowerCase()),
  }));
  const near = ranked.filter(({ apart }) => apart <= Math.max(2, wanted.length * 0.4));
  const closest = near.sort((one, two) => one.apart - two.apart || one.other.localeCompare(two.other));
  return closest.slice(0, suggestionLimit).map(({ other }) => other);
}

/** Edit distance; a name that contains the other counts as close. */
function nameDistance(wanted: string, other: string): number {
  if (other.includes(wanted) || (other.length > 2 && wanted.includes(other)))
    return Math.min(2, distance(wanted, other));
  return distance(wanted, other);
}

async function listNames(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    // The folder is missing or not readable: there is nothing to suggest.
    if (codeOf(error) === undefined) throw error;
    return [];
  }
}

/** Where a command line runs, to resolve its relative paths and `~`. */
export interface ShellFolders {
  /** The session's working directory, to which paths in rules are relative; an absolute real path. */
  cwd: string;
  /** The folder in which the command runs; an absolute real path. */
  start: string;
  home: string;
  roots: readonly string[];
  /** Name or path of the shell that runs it. */
  shell: string;
}
