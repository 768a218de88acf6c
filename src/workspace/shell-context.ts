import { findOwnConfigurationReason } from "../permission/own-configuration.ts";
import type { ShellContext } from "../shell/facts.ts";
import { listNamesSync } from "./folder-names.ts";
import { realPathSync } from "./files/real-path.ts";

/** Context for analysing a command line. */
export function createShellContext({
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
    list: listNamesSync,
  };
}
