import { z } from "zod";
import { hasKernelLocks } from "../../storage/json/lock.ts";
import { type Environment, findProgram } from "../../workspace/process/find-program.ts";
import { findBash } from "../../workspace/process/find-shell.ts";
import type { Finding } from "./finding.ts";

const reportSchema = z.object({ header: z.object({ glibcVersionRuntime: z.string().optional() }) });

export interface System {
  readonly platform: NodeJS.Platform;
  readonly arch: string;
  /** Version of the C library on Linux; undefined with musl. */
  readonly glibc: string | undefined;
  readonly bash: string | undefined;
  readonly git: string | undefined;
  /** Whether the native part loads, which locks and exchanges files by system calls. */
  readonly hasNativePart: boolean;
}

export async function findSystem(env: Environment): Promise<System> {
  const { platform, arch } = process;
  const glibc =
    platform === "linux"
      ? reportSchema.parse(process.report.getReport()).header.glibcVersionRuntime
      : undefined;
  const [bash, git] = await Promise.all([findBash(env), findProgram("git", env)]);
  return { platform, arch, glibc, bash, git, hasNativePart: await hasKernelLocks() };
}

/** Names the system, and what Fairlead does differently there than on Linux with glibc. */
export function systemFindings(system: System): Finding[] {
  const { platform, bash, git } = system;
  const what = "System";
  const found = nameSystem(system);
  const notes = listDifferences(system);
  const note = notes.length === 0 ? {} : { note: notes.join(" ") };
  const named: Finding =
    platform === "win32" && bash === undefined
      ? {
          what,
          found,
          todo: "Rules for commands and models expect a POSIX shell. Install Git for Windows, whose bash Fairlead finds.",
        }
      : { what, found, ...note };
  return git === undefined ? [named, missingGit] : [named];
}

function nameSystem({ platform, arch, glibc, bash }: System): string {
  const name = `${platform} ${arch}`;
  if (platform === "win32") return `${name}, shell ${bash ?? "cmd.exe"}`;
  const library = platform === "linux" ? [glibc === undefined ? "musl" : `glibc ${glibc}`] : [];
  return [name, ...library, ...(bash === undefined ? ["shell /bin/sh"] : [])].join(", ");
}

function listDifferences({ platform, bash, hasNativePart }: System): string[] {
  const isWindows = platform === "win32";
  return [
    ...(hasNativePart
      ? []
      : [
          "Locks between processes are files here, and a file that somebody else saves at the same time is preserved by a second link: the native part for both does not load.",
        ]),
    ...(platform === "darwin"
      ? [
          "A cancelled command ends with its process group. Programs that left the group go on, because macOS does not show the environment that marks them.",
        ]
      : []),
    ...(isWindows
      ? [
          "If Fairlead is killed, commands that it started may go on: there is no watchdog on Windows. A turn that goes on without its editor cannot be joined.",
        ]
      : []),
    ...(!isWindows && bash === undefined
      ? [
          "Commands run in /bin/sh: bash is not installed. Models write commands for bash, and some fail or ask here. Install bash.",
        ]
      : []),
  ];
}

const missingGit: Finding = {
  what: "Git",
  found: "not installed",
  note: "Sessions and tasks cannot have worktrees, and changes that commands make are found by comparing files. Install git.",
};
