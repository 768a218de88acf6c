import { z } from "zod";
import type { Environment } from "../../workspace/process/find-program.ts";
import { findBash } from "../../workspace/process/find-shell.ts";
import type { Finding } from "./finding.ts";

const reportSchema = z.object({ header: z.object({ glibcVersionRuntime: z.string().optional() }) });

export interface System {
  readonly platform: NodeJS.Platform;
  readonly arch: string;
  /** Version of the C library on Linux; undefined with musl. */
  readonly glibc: string | undefined;
  readonly bash: string | undefined;
}

export async function findSystem(env: Environment): Promise<System> {
  const { platform, arch } = process;
  const glibc =
    platform === "linux"
      ? reportSchema.parse(process.report.getReport()).header.glibcVersionRuntime
      : undefined;
  return { platform, arch, glibc, bash: await findBash(env) };
}

/** Names the system, and what Fairlead does differently there than on Linux with glibc. */
export function systemFinding({ platform, arch, glibc, bash }: System): Finding {
  const what = "System";
  const name = `${platform} ${arch}`;
  if (platform === "linux") {
    if (glibc !== undefined) return { what, found: `${name}, glibc ${glibc}` };
    const note =
      "Locks between processes are files here, and a file that somebody else saves at the same time is kept by a second link, because the native part for both is built for glibc.";
    return { what, found: `${name}, musl`, note };
  }
  if (platform !== "win32") {
    const note =
      "A cancelled command ends with its process group. Programs that left the group go on, because macOS does not show the environment that marks them.";
    return platform === "darwin" ? { what, found: name, note } : { what, found: name };
  }
  const found = `${name}, shell ${bash ?? "cmd.exe"}`;
  if (bash === undefined)
    return {
      what,
      found,
      todo: "Rules for commands and models expect a POSIX shell. Install Git for Windows, whose bash Fairlead finds.",
    };
  const note =
    "If Fairlead is killed, commands that it started may go on: there is no watchdog on Windows. A turn that goes on without its editor cannot be joined.";
  return { what, found, note };
}
