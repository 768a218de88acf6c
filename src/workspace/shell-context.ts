import { readFileSync, statSync } from "node:fs";
import { findOwnConfigurationReason } from "../permission/own-configuration.ts";
import { toSlashes } from "../base/files/paths.ts";
import type { ShellContext } from "../shell/facts.ts";
import { dialectOf } from "../shell/syntax/dialect.ts";
import { listNamesSync } from "./folder-names.ts";
import { realPathSync } from "./files/real-path.ts";

type Folders = Pick<ShellContext, "cwd" | "start" | "roots" | "home"> & {
  /** Name or path of the shell that runs the line. */
  readonly shell: string;
};

/** Context for analyzing a command line. */
export function createShellContext(folders: Folders, platform = process.platform): ShellContext {
  const { cwd, start, roots, home, shell } = folders;
  const context = {
    cwd,
    ...(start !== undefined && { start }),
    roots,
    home,
    dialect: dialectOf(shell),
    resolve: realPathSync,
    findCriticalReason: findOwnConfigurationReason,
    list: listNamesSync,
    readText,
  };
  return platform === "win32" ? toWindowsContext(context) : context;
}

/** Converts to and from the paths of Git's bash, in which `C:\Users` is `/c/Users`. */
function toWindowsContext(
  native: Required<Omit<ShellContext, "start" | "readPath" | "showPath">> & { start?: string },
) {
  const { start, dialect, resolve, findCriticalReason, list, readText } = native;
  const drive = /^[a-z]:/i.exec(native.cwd)?.[0].toLowerCase();
  return {
    cwd: toShellPath(native.cwd),
    ...(start !== undefined && { start: toShellPath(start) }),
    roots: native.roots.map(toShellPath),
    home: toShellPath(native.home),
    dialect,
    // `D:a` is below the current folder of that drive: unknown, unless it is the drive of `cwd`.
    readPath: (text) => {
      const [, other, rest = ""] = /^([a-z]:)([^\s\\/].*)$/is.exec(text) ?? [];
      if (other === undefined) return toShellPath(text);
      return toShellPath(other.toLowerCase() === drive ? rest : `${other}/${rest}`);
    },
    showPath: (path) => toSlashes(toWindowsPath(path), "\\"),
    resolve: (path) => toShellPath(resolve(toWindowsPath(path))),
    findCriticalReason: (path, below) => findCriticalReason(toWindowsPath(path), below),
    list: (folder) => list(toWindowsPath(folder)),
    readText: (path) => readText(toWindowsPath(path)),
  } satisfies ShellContext;
}

function toShellPath(path: string): string {
  return toSlashes(path, "\\").replace(
    /^([a-z]):(?=\/|$)/i,
    (_, letter: string) => `/${letter.toLowerCase()}`,
  );
}

export function toWindowsPath(path: string): string {
  const drive = path.replace(/^\/([a-z])(?=\/|$)/i, (_, letter: string) => `${letter.toUpperCase()}:`);
  return (/^[A-Z]:$/.test(drive) ? `${drive}/` : drive).replaceAll("/", "\\");
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
