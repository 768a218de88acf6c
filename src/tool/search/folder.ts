import type { PermissionRequest } from "../../permission/rule.ts";
import type { ResolvedPath } from "../../workspace/paths.ts";
import { externalPermissions, pathPermissions, resolvePathToRead, titleOf } from "../paths.ts";
import { ToolFailure, type ToolContext } from "../tool.ts";

export interface SearchTarget {
  /** Absolute real path. */
  path: string;
  kind: "file" | "directory";
  /** Relative to the working directory if inside. */
  title: string;
  resolved: ResolvedPath;
  /** For the model, if another path is searched than it asked for. */
  note?: string;
  /** Permissions for a path under no root. */
  external: PermissionRequest[];
  /** The same plus the permission to read. */
  reading: PermissionRequest[];
}

/** The place, for use within a sentence. */
export function nameOf({ title }: SearchTarget): string {
  return title === "." ? "the working directory" : title;
}

/** Resolves a folder to search like {@link resolveSearchTarget}. */
export async function resolveSearchFolder(
  context: ToolContext,
  raw: string | undefined,
): Promise<SearchTarget> {
  const target = await resolveSearchTarget(context, raw);
  if (target.kind === "directory") return target;
  throw new ToolFailure(`${target.title} is a file. Give the folder that holds it.`);
}

/**
 * Resolves a file or folder to search, by default the working directory. A missing path is read as the only one that it
 * can mean, with a note.
 */
export async function resolveSearchTarget(
  context: ToolContext,
  raw: string | undefined,
): Promise<SearchTarget> {
  const rawPath = raw?.trim() || ".";
  const { resolved, note } = await resolvePathToRead(context, rawPath);
  const { kind, path } = resolved;
  if (kind !== "file" && kind !== "directory")
    throw new ToolFailure(`${rawPath} does not exist. Find it with glob or list.`);
  return {
    path,
    kind,
    title: titleOf(context, resolved),
    resolved,
    ...(note !== undefined && { note }),
    external: externalPermissions(context, resolved),
    reading: pathPermissions(context, resolved, "read"),
  };
}
