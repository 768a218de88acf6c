import { lstat, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import type { Stats } from "node:fs";
import { codeOf, isMissing, UserError } from "../base/errors.ts";
import { isBelow } from "../base/files/paths.ts";

export interface ResolvedPath {
  /** Real path of the deepest ancestor that exists, followed by what does not exist yet. */
  readonly path: string;
  /** The absolute path as it was asked for, links not followed. Differs from `path` when a link is on the way. */
  readonly asked: string;
  readonly exists: boolean;
  /** `special` is a device, a FIFO, a socket, or anything that the kernel makes up (`/proc`, `/sys`, `/dev`). */
  readonly kind: "file" | "directory" | "special" | "missing";
  /** Bytes of a file; 0 where nothing is there. */
  readonly size: number;
}

/** Base for relative paths and `~`. */
export interface PathBase {
  readonly cwd: string;
  readonly home: string;
}

/** Characters; Linux takes 4,096 bytes, and each folder of a path that is not there is looked for. */
const longestPath = 8_192;
/** The number of links that Linux follows before it says ELOOP. */
const linkLimit = 40;
const kernelFolders = ["/proc", "/sys", "/dev"];

/**
 * Resolves a path to its real target, so that the path that was checked is the one that is opened.
 * Throws {@link UserError} for a path that cannot be one: empty, with a NUL, in a loop of links, closed to us.
 */
export async function resolvePath(raw: string, base: PathBase): Promise<ResolvedPath> {
  const asked = toAbsolute(raw, base);
  const path = await withReadableErrors(raw, () => realPathOf(asked, linkLimit));
  const found = await withReadableErrors(raw, () => statOrMissing(path));
  return {
    path,
    asked,
    exists: found !== undefined,
    kind: kindOf(found, [path, asked]),
    size: found?.size ?? 0,
  };
}

/** Whether the path is one of the folders or lies under one. All are absolute real paths. */
export function isInside(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => isBelow(path, folder));
}

/** The path as people and rules write it: relative to the folder where it lies inside, else absolute; with `/`. */
export function relativeTo(folder: string, path: string): string {
  if (!isInside(path, [folder])) return withSlashes(path);
  return withSlashes(relative(folder, path)) || ".";
}

/** The path as it was asked for, links not followed. Looks at no disk. Throws as {@link resolvePath} for no path. */
export function toAbsolute(raw: string, { cwd, home }: PathBase): string {
  if (raw === "") throw new UserError("The path is empty. Give the path of a file or folder.");
  if (raw.length > longestPath)
    throw new UserError(`The path has ${raw.length} characters, more than any system takes.`);
  if (raw.includes("\0")) throw new UserError("The path contains a NUL character, which no file name can.");
  if (raw === "~") return home;
  if (raw.startsWith("~/") || raw.startsWith(`~${sep}`)) return resolve(home, raw.slice(2));
  return resolve(cwd, raw);
}

/** Whether the path, as it is written, is one that the kernel makes up. */
export function isKernelPath(path: string): boolean {
  return isInside(path, kernelFolders);
}

async function realPathOf(path: string, linksLeft: number): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  const parent = dirname(path);
  if (parent === path) return path;
  const place = join(await realPathOf(parent, linksLeft), basename(path));
  return followDanglingLink(place, linksLeft);
}

/** Writing to a link whose target is missing creates the target, so the target is what counts. */
async function followDanglingLink(path: string, linksLeft: number): Promise<string> {
  const target = await linkTarget(path);
  if (target === undefined) return path;
  if (linksLeft === 0) throw new UserError(`${path} leads through too many links.`);
  return realPathOf(resolve(dirname(path), target), linksLeft - 1);
}

async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : undefined;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

async function statOrMissing(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function kindOf(found: Stats | undefined, spellings: readonly string[]): ResolvedPath["kind"] {
  if (spellings.some((path) => isInside(path, kernelFolders))) return "special";
  if (found === undefined) return "missing";
  if (found.isFile()) return "file";
  return found.isDirectory() ? "directory" : "special";
}

async function withReadableErrors<T>(raw: string, task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    const problem = pathProblems.get(codeOf(error) ?? "");
    if (problem === undefined) throw error;
    throw new UserError(`${raw}: ${problem}`, { cause: error });
  }
}

const pathProblems: ReadonlyMap<string, string> = new Map([
  ["EACCES", "a folder on the way may not be entered by this user."],
  ["EPERM", "the system does not let this user look at it."],
  ["ELOOP", "the links on the way go round in a circle."],
  ["ENAMETOOLONG", "the name is longer than the file system allows."],
]);

/** Returns the path with `/` as separator on every system. */
export function withSlashes(path: string): string {
  return sep === "/" ? path : path.replaceAll(sep, "/");
}
