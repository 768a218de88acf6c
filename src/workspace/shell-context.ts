import { readFileSync, statSync } from "node:fs";
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
    readText,
  };
}

/** Longer files are not read. */
const textLimitBytes = 256 * 1024;

function readText(path: string): string | undefined {
  try {
    const found = statSync(path);
    return found.isFile() && found.size <= textLimitBytes ? readFileSync(path, "utf8") : undefined;
  } catch {
    return undefined;
  }
}
