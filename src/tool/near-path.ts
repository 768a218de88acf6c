import { lstat } from "node:fs/promises";
import { basename, isAbsolute, parse, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { isMissing, UserError } from "../base/errors.ts";
import { formatPath, isInside, resolvePath, type ResolvedPath } from "../workspace/paths.ts";
import { toSlashes } from "../base/files/paths.ts";
import type { ToolContext } from "./tool.ts";

type InWorkspace = Pick<ToolContext, "workspace">;

/** An existing path that a path of the model may mean. */
export interface NearPath {
  readonly resolved: ResolvedPath;
  /** Lines named after the path, as in `src/a.ts:3-5`. */
  readonly lines?: NamedLines | undefined;
}

interface NamedLines {
  readonly first: number;
  readonly count?: number;
}

/** Files with the same name that are looked up. */
const sameNameLimit = 100;

/**
 * Returns existing paths of the workspace that a missing path may mean: first other notations of it, else files whose
 * path ends with it. Must not reveal anything outside the workspace.
 */
export async function findNearPaths(
  context: InWorkspace,
  raw: string,
  signal?: AbortSignal,
): Promise<NearPath[]> {
  const noted = await findOtherNotations(context, raw);
  return noted.length > 0 ? noted : findByEnding(context, raw, signal);
}

async function findOtherNotations({ workspace }: InWorkspace, raw: string): Promise<NearPath[]> {
  const found = new Map<string, NearPath>();
  for (const plain of new Set([raw, ...unwrapPath(raw)].map(toPlainPath))) {
    const { path, lines } = splitLines(plain);
    for (const spelling of new Set([plain, path, ...(await otherPrefixes(workspace.cwd, path))])) {
      const resolved = await resolveQuietly({ workspace }, spelling);
      if (resolved === undefined || found.has(resolved.path)) continue;
      found.set(resolved.path, { resolved, ...(spelling !== plain && lines !== undefined && { lines }) });
    }
  }
  return [...found.values()];
}

/** Returns the path without what shells, Markdown, URLs and sentences put into or around it. */
function unwrapPath(raw: string): string[] {
  const bare = raw.trim();
  const link = /^\[[^\]]*\]\(([^)\s]+)\)$/.exec(bare)?.[1];
  return [
    ...(link === undefined ? [] : [link]),
    bare.replaceAll("\\ ", " "),
    decodePercent(bare),
    bare.replaceAll(/^[<([{\u201C\u2018:]+|[>)\]}\u201D\u2019.,;:]+$/g, ""),
    bare.replace(/^(?:\$\{?(?:PWD|workspaceFolder|workspaceRoot|cwd)\}?|\$\(pwd\))[/\\]/, ""),
    bare.replaceAll(/[\u200B-\u200D\u2060\uFEFF]/g, ""),
    bare.normalize("NFC"),
    bare.normalize("NFD"),
  ];
}

function decodePercent(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    // A plain % that encodes nothing.
    return path;
  }
}

/** Returns the path without quotes, blanks around it, `file://` and backslashes. */
export function toPlainPath(raw: string): string {
  const bare = raw
    .trim()
    .replace(/^(["'`])(.*)\1$/s, "$2")
    .trim();
  if (/^file:\/\//i.test(bare) && URL.canParse(bare)) {
    try {
      return toSlashes(fileURLToPath(bare));
    } catch {
      // A URL of another host or with an encoded slash names no path here.
      return bare;
    }
  }
  return bare.replaceAll("\\", "/");
}

/** Whether the path is written as paths are on a system with this separator. */
export function isPlainPath(raw: string, separator: string = sep): boolean {
  return toPlainPath(raw) === toSlashes(raw, separator);
}

/** Splits `:3`, `:3:7`, `:3-5` and `#L3-L5` from a path. */
function splitLines(path: string): { path: string; lines?: NamedLines } {
  const match = /^(.+?)(?::(\d{1,7})(?:-(\d{1,7})|:\d+)?|#L(\d{1,7})(?:-L?(\d{1,7}))?)$/s.exec(path);
  if (match === null) return { path };
  const first = Number(match[2] ?? match[4]);
  const last = Number(match[3] ?? match[5] ?? Number.NaN);
  return { path: match[1] ?? path, lines: { first, ...(last >= first && { count: last - first + 1 }) } };
}

/** Returns the path without `@`, a diff's `a/` or `b/`, the working directory's name, or the slash before it. */
async function otherPrefixes(cwd: string, path: string): Promise<string[]> {
  const own = `${basename(cwd)}/`;
  const relative = path.replace(/^\/+/, "");
  if (isAbsolute(path) && (await hasFirstFolder(path))) return [];
  return [
    relative,
    relative.replace(/^@/, ""),
    relative.replace(/^[ab]\//, ""),
    relative.startsWith(own) ? relative.slice(own.length) : relative,
  ].filter((one) => one !== "");
}

/** Whether the first folder of an absolute path exists. If so, the path is outside on purpose. */
async function hasFirstFolder(path: string): Promise<boolean> {
  const { root } = parse(path);
  const [first = ""] = toSlashes(path.slice(root.length)).split("/");
  try {
    await lstat(`${root}${first}`);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** Resolves a path; undefined if it is missing, invalid or outside the workspace. */
async function resolveQuietly({ workspace }: InWorkspace, path: string): Promise<ResolvedPath | undefined> {
  if (path === "") return undefined;
  try {
    const resolved = await resolvePath(path, workspace);
    const isFound = resolved.kind === "file" || resolved.kind === "directory";
    return isFound && isInside(resolved.path, workspace.roots) ? resolved : undefined;
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/** Names that most folders may have: a file of another folder is not meant. */
const commonNames =
  /^(?:index|main|mod|lib|init|__init__|setup|config|types|utils|constants|package|readme|license|makefile|dockerfile)(?:\.|$)/i;

/**
 * Finds files of the working directory, except ignored ones, that match the pattern, or whose path ends like the given
 * one: as many last names as possible are the same, without regard to upper and lower case.
 */
async function findByEnding(
  { workspace }: InWorkspace,
  raw: string,
  signal = new AbortController().signal,
): Promise<NearPath[]> {
  const { path, lines } = splitLines(toPlainPath(raw));
  const ending = await toEnding(workspace.cwd, path);
  if (ending === undefined) return [];
  const names = ending.split("/");
  const last = names.at(-1) ?? "";
  const isPattern = /[*?]/.test(ending);
  const { paths } = await workspace.search.files({
    folder: workspace.cwd,
    globs: [isPattern ? ending : `**/${ignoreCase(last)}`],
    limit: sameNameLimit,
    order: "path",
    signal,
  });
  const rated = paths.map((one) => ({ one, ...countEqualNames(one, names) }));
  const most = Math.max(0, ...rated.map(({ alike }) => alike));
  if (!isPattern && most < names.length && commonNames.test(last)) return [];
  const alike = isPattern ? rated : rated.filter((one) => one.alike === most);
  const exact = alike.filter((one) => one.equal === most);
  const best = exact.length > 0 ? exact : alike;
  const found = await Promise.all(best.map(({ one }) => resolveQuietly({ workspace }, one)));
  return found.filter((one) => one !== undefined).map((resolved) => ({ resolved, lines }));
}

/** Returns the path to look for below the working directory; undefined if another place is meant. */
async function toEnding(cwd: string, path: string): Promise<string | undefined> {
  const isInCwd = path.startsWith(`${toSlashes(cwd)}/`);
  if (!isInCwd && isAbsolute(path) && (await hasFirstFolder(path))) return undefined;
  const inside = isInCwd ? path.slice(cwd.length) : path;
  const ending = inside.replace(/^\/+/, "").replace(/^\.\//, "");
  if (ending === "" || ending.endsWith("/") || /[[\]{}!\\\n]|^~|(?:^|\/)\.\.\//.test(ending))
    return undefined;
  return ending;
}

const ignoreCase = (name: string): string =>
  name.replaceAll(/\p{L}/gu, (letter) => {
    const [lower, upper] = [letter.toLowerCase(), letter.toUpperCase()];
    return lower !== upper && lower.length === 1 && upper.length === 1 ? `[${lower}${upper}]` : letter;
  });

/** Counts the last names that are the same, without regard to upper and lower case, and exactly. */
function countEqualNames(path: string, names: readonly string[]): { alike: number; equal: number } {
  const own = toSlashes(path).split("/").toReversed();
  const wanted = names.toReversed();
  const count = (isSame: (one: string, other: string) => boolean) => {
    const end = wanted.findIndex((name, index) => !isSame(name, own[index] ?? ""));
    return end === -1 ? wanted.length : end;
  };
  return {
    alike: count((one, other) => one.toLowerCase() === other.toLowerCase()),
    equal: count((one, other) => one === other),
  };
}

/** Returns the line for the model about a path that was read instead of the one asked for. */
export function nearPathNote({ workspace }: InWorkspace, { path }: ResolvedPath, raw: string): string {
  return `Read ${formatPath(workspace.cwd, path)} (you asked for ${JSON.stringify(raw)}, which does not exist).`;
}
