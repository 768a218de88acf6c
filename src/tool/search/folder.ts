import type { PermissionRequest } from "../../permission/rule.ts";
import type { ResolvedPath } from "../../workspace/paths.ts";
import {
  externalPermissions,
  missingPathMessage,
  pathPermissions,
  resolveToolPath,
  titleOf,
} from "../paths.ts";
import { ToolFailure, type ToolContext } from "../tool.ts";

export interface SearchPlace {
  /** Absolute real path. */
  path: string;
  kind: "file" | "directory";
  /** Relative to the working directory if inside. */
  title: string;
  resolved: ResolvedPath;
  /** Permissions for a path under no root. */
  external: PermissionRequest[];
  /** The same plus the permission to read. */
  reading: PermissionRequest[];
}

/** The place, for use within a sentence. */
export function nameOf({ title }: SearchPlace): string {
  return title === "." ? "the working directory" : title;
}

/** Resolves a folder, by default the working directory. Throws {@link ToolFailure} if it is not a folder. */
export async function resolveFolder(context: ToolContext, raw: string | undefined): Promise<SearchPlace> {
  const place = await resolvePlace(context, raw);
  if (place.kind === "directory") return place;
  throw new ToolFailure(`${place.title} is a file. Give the folder that holds it.`);
}

/** Resolves a file or folder, by default the working directory. */
export async function resolvePlace(context: ToolContext, raw: string | undefined): Promise<SearchPlace> {
  const asked = raw?.trim() || ".";
  const resolved = await resolveToolPath(context, asked);
  const { kind, path } = resolved;
  if (kind !== "file" && kind !== "directory")
    throw new ToolFailure(await missingPathMessage(context, resolved, asked));
  return {
    path,
    kind,
    title: titleOf(context, resolved),
    resolved,
    external: externalPermissions(context, resolved),
    reading: pathPermissions(context, resolved, "read"),
  };
}
