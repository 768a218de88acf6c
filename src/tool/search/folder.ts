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
  /** Relative to the working directory where it lies inside. */
  title: string;
  resolved: ResolvedPath;
  /** What it takes to look there when it lies under no root. */
  external: PermissionRequest[];
  /** The same, and to read it. */
  reading: PermissionRequest[];
}

/** The place in the middle of a sentence. */
export function nameOf({ title }: SearchPlace): string {
  return title === "." ? "the working directory" : title;
}

/** The folder that the model named, or the working directory. Throws {@link ToolFailure} when it is none. */
export async function resolveFolder(context: ToolContext, raw: string | undefined): Promise<SearchPlace> {
  const place = await resolvePlace(context, raw);
  if (place.kind === "directory") return place;
  throw new ToolFailure(`${place.title} is a file. Give the folder that holds it.`);
}

/** The file or folder that the model named, or the working directory. */
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
