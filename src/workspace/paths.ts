import { lstat, readlink, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep, win32 } from "node:path";
import type { Stats } from "node:fs";
import { codeOf, isMissing, UserError } from "../base/errors.ts";
import { isBelow, toSlashes } from "../base/files/paths.ts";

export interface ResolvedPath {
  /** Real path of the deepest existing ancestor, followed by the missing rest. */
  readonly path: string;
  /** The absolute path without following links. Differs from `path` if a link is on the way. */
  readonly unresolved: string;
  readonly exists: boolean;
  /** `special` is a device, a FIFO, a socket, or a kernel file (`/proc`, `/sys`, `/dev`). */
  readonly kind: "file" | "directory" | "special" | "missing";
  /** Size in bytes; 0 if nothing is there. */
  readonly size: number;
}

/** Base for relative paths and `~`. */
export interface PathBase {
  readonly cwd: string;
  readonly home: string;
}

/** Characters. Linux allows 4,096 bytes, and each missing folder of a path is checked. */
const longestPath = 8_192;
/** Characters of a name on Windows, which calls a longer one missing. Linux and macOS say that it is too long. */
const longestName = 255;
/** Links that Linux follows before ELOOP. */
const linkLimit = 40;
const kernelFolders = ["/proc", "/sys", "/dev"];

/**
 * Resolves a path to its real target, so that the checked path is the opened one.
 * Throws {@link UserError} for an invalid path: empty, with a NUL, with a link cycle, or inaccessible.
 */
export async function resolvePath(raw: string, base: PathBase): Promise<ResolvedPath> {
  const unresolved = toAbsolute(raw, base);
  if (namesStream(unresolved))
    return { path: unresolved, unresolved, exists: false, kind: "missing", size: 0 };
  if (hasLongName(unresolved)) throw new UserError(`${raw}: ${nameTooLong}`);
  const path = await withReadableErrors(raw, () => findRealPath(unresolved, linkLimit));
  const found = await withReadableErrors(raw, () => statOrMissing(path));
  return {
    path,
    unresolved,
    exists: found !== undefined,
    kind: kindOf(found, [path, unresolved]),
    size: found?.size ?? 0,
  };
}

/** Whether the path is one of the folders or inside one. All are absolute real paths. */
export function isInside(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => isBelow(path, folder));
}

/** Path for display and rules: relative to the folder if inside, else absolute; with `/`. */
export function formatPath(folder: string, path: string): string {
  if (!isInside(path, [folder])) return toSlashes(path);
  return toSlashes(relative(folder, path)) || ".";
}

/**
 * The absolute path without following links or accessing the disk. Throws for invalid paths as {@link
 * resolvePath} does.
 */
export function toAbsolute(raw: string, { cwd, home }: PathBase): string {
  if (raw === "") throw new UserError("The path is empty. Give the path of a file or folder.");
  if (raw.length > longestPath)
    throw new UserError(`The path has ${raw.length} characters, more than any system allows.`);
  if (raw.includes("\0")) throw new UserError("The path contains a NUL character, which no file name can.");
  if (raw === "~") return home;
  if (raw.startsWith("~/") || raw.startsWith(`~${sep}`)) return resolve(home, raw.slice(2));
  return resolve(cwd, raw);
}

/**
 * Whether the absolute path names a stream, which is a second content of a file on Windows: `a.txt:notes`. The path
 * `.env::$DATA` is the content of `.env` by a name that no rule for `.env` matches.
 */
export function namesStream(path: string, platform: NodeJS.Platform = process.platform): boolean {
  return platform === "win32" && namesOf(path).includes(":");
}

/**
 * Returns why Windows cannot create a file with this absolute path, or would create another one; undefined if it can.
 * The system itself says only that there is no such file.
 */
export function findForbiddenName(
  path: string,
  platform: NodeJS.Platform = process.platform,
): string | undefined {
  if (platform !== "win32") return undefined;
  if (namesStream(path, platform))
    return `${path} names a stream of a file: Windows allows no colon in names.`;
  const [forbidden] = /[<>"|?*\t\n\r]/.exec(namesOf(path)) ?? [];
  return forbidden && `${path}: Windows allows no ${JSON.stringify(forbidden)} in names.`;
}

/** Whether a name in this absolute path is too long for Windows. False on other systems. */
export function hasLongName(path: string, platform: NodeJS.Platform = process.platform): boolean {
  return (
    platform === "win32" &&
    namesOf(path)
      .split(/[\\/]/)
      .some((name) => name.length > longestName)
  );
}

/** An absolute path of Windows without its drive or share. */
const namesOf = (path: string): string => path.slice(win32.parse(path).root.length);

/** Whether the path, as written, is a kernel file. */
export function isKernelPath(path: string): boolean {
  return isInside(path, kernelFolders);
}

async function findRealPath(path: string, linksLeft: number): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  const parent = dirname(path);
  if (parent === path) return path;
  const candidate = join(await findRealPath(parent, linksLeft), basename(path));
  return followDanglingLink(candidate, linksLeft);
}

/** Writing to a link with a missing target creates the target. */
async function followDanglingLink(path: string, linksLeft: number): Promise<string> {
  const target = await readLinkTarget(path);
  if (target === undefined) return path;
  if (linksLeft === 0) throw new UserError(`${path} has too many links.`);
  return findRealPath(resolve(dirname(path), target), linksLeft - 1);
}

async function readLinkTarget(path: string): Promise<string | undefined> {
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

const nameTooLong = "the name is too long for the file system.";

const pathProblems: ReadonlyMap<string, string> = new Map([
  ["EACCES", "permission denied for a folder on the way."],
  ["EPERM", "operation not permitted."],
  ["ELOOP", "there is a link cycle on the way."],
  ["ENAMETOOLONG", nameTooLong],
]);
