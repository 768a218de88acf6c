import { findOwnConfigurationReason } from "../permission/own-configuration.ts";
import type { ShellContext } from "../shell/facts.ts";
import { namesInSync } from "./folder-names.ts";
import { realPathSync } from "./files/real-path.ts";

/** Facts needed, with the text, to judge a command line. */
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
    findCriticalReason: findOwnConfigurationReason,
    list: namesInSync,
  };
}
