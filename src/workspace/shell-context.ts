import type { ShellContext } from "../permission/shell/part.ts";
import { namesInSync } from "./folder-names.ts";
import { realPathSync } from "./real-path.ts";
import type { Workspace } from "./workspace.ts";

/** What command lines are judged by, beside their text. */
export function shellContext({ cwd, roots, home }: Pick<Workspace, "cwd" | "roots" | "home">): ShellContext {
  return { cwd, roots, home, resolve: realPathSync, list: namesInSync };
}
