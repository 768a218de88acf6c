import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isWithin, type SandboxProfile } from "../../../src/sandbox/profile.ts";

/** The calls that write, read, rename or connect. */
const traced =
  "open,openat,openat2,creat,mkdir,mkdirat,rmdir,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,chmod,fchmodat,truncate,mknod,mknodat,connect,execve,pivot_root,chdir";

/** Command line prefix that records system calls, one file per process. */
export const createTracer = (folder: string): string[] => [
  "strace",
  "-ff",
  "-y",
  "-s",
  "4096",
  "-e",
  `trace=${traced}`,
  "-o",
  join(folder, "trace"),
  "--",
];

/** A confined command's calls outside its profile, and the calls that the kernel refused. */
export interface KernelCalls {
  readonly count: number;
  readonly violations: readonly string[];
  readonly refused: readonly string[];
}

/** Folders that the sandbox creates for the command alone. */
const privateFolders = ["/tmp", "/dev", "/proc", "/run"];

/** Compares the recorded calls with the profile. */
export function compareCalls(folder: string, profile: SandboxProfile, start: string): KernelCalls {
  const lines = readdirSync(folder).flatMap((name) => readConfined(join(folder, name)));
  const calls = lines.flatMap(({ text, cwd }) => parseCall(text, cwd ?? start));
  const done = calls.filter(({ error }) => error === undefined || error === "EINPROGRESS");
  return {
    count: calls.length,
    violations: done.filter((call) => isViolation(call, profile)).map(({ text }) => text),
    refused: calls
      .filter(({ error }) => ["EROFS", "EACCES", "EPERM", "ENETUNREACH", "EBUSY"].includes(error ?? ""))
      .map(({ text }) => text),
  };
}

interface Call {
  readonly text: string;
  readonly kind: "read" | "write" | "connect";
  readonly paths: readonly string[];
  readonly error: string | undefined;
}

/** Returns the lines of a process after bubblewrap, which mounts folders before it starts the command. */
function readConfined(file: string): { text: string; cwd: string | undefined }[] {
  const lines = readFileSync(file, "utf8").split("\n");
  if (lines.some((line) => /^pivot_root\(|^execve\("[^"]*\/bwrap"/.test(line))) return [];
  const isFirst = lines.some((line) => /^execve\(.*"bash", "-c"/.test(line) && line.includes("= 0"));
  let isStarted = !isFirst;
  let cwd: string | undefined;
  return lines.flatMap((text) => {
    isStarted ||= text.startsWith("execve(");
    const changed = /^chdir\("([^"]*)"\) = 0/.exec(text)?.[1];
    if (changed !== undefined) cwd = join(cwd ?? "/", changed);
    return isStarted ? [{ text, cwd }] : [];
  });
}

function parseCall(text: string, start: string): Call[] {
  const [, name = "", given = "", result = ""] = /^(\w+)\((.*)\)\s+= (.*)$/.exec(text) ?? [];
  if (name === "" || ["execve", "chdir"].includes(name)) return [];
  const error = /^-1 (E\w+)/.exec(result)?.[1];
  if (name === "connect") return [{ text, kind: "connect", paths: [], error }];
  const opened = /^\d+<([^>]*)>/.exec(result)?.[1];
  const isOpen = /^open|^creat$/.test(name);
  const isWrite = !isOpen || name === "creat" || /O_WRONLY|O_RDWR|O_CREAT|O_TRUNC/.test(given);
  const paths = opened === undefined ? listPaths(name, given, start) : [opened];
  return [{ text, kind: isWrite ? "write" : "read", paths, error }];
}

/** Returns the absolute paths that a call names. */
function listPaths(name: string, given: string, start: string): string[] {
  const named = [...given.matchAll(/(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"/g)];
  const paths = named.map(([, folder = start, path = ""]) =>
    path.startsWith("/") ? path : join(folder, path),
  );
  // The target of a symbolic link is text, and the old name of a hard link is not changed.
  return name.startsWith("symlink") || name.startsWith("link") ? paths.slice(1) : paths;
}

function isViolation({ kind, paths, text }: Call, profile: SandboxProfile): boolean {
  const { writable, readOnly, hidden, temporary } = profile;
  const isIn = (folders: readonly string[]) => (path: string) => folders.some((one) => isWithin(path, one));
  if (kind === "connect")
    return !/127\.0\.0\.1|::1|AF_NETLINK|AF_UNSPEC|sun_path/.test(text) || /docker|ssh-/.test(text);
  // The cover of a hidden path has no rights, so that nothing can be opened there.
  if (paths.some(isIn(hidden))) return true;
  if (kind === "read") return false;
  const isAllowed = (path: string) =>
    isIn([...writable, temporary, ...privateFolders])(path) && !isIn(readOnly)(path);
  return paths.some((path) => path.startsWith("/") && !isAllowed(path));
}
