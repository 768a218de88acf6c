import type { ShellContext } from "../permission/shell/part.ts";
import { namesInSync } from "./folder-names.ts";
import { realPathSync } from "./real-path.ts";

/** What command lines are judged by, beside their text. */
export function shellContext({
  cwd,
  start,
  roots,
  home,
}: Pick<ShellContext, "cwd" | "start" | "roots" | "home">): ShellContext {
  return {
    cwd,
    ...(start !== undefined && { start }),
    roots,
    home,
    resolve: realPathSync,
    list: namesInSync,
  };
}
