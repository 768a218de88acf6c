import { z } from "zod";
import { type Environment, findProgram } from "../../workspace/process/find-program.ts";
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
  return { platform, arch, glibc, bash: await findProgram("bash", env) };
}

/** Names the system, and what Fairlead does differently there than on Linux with glibc. */
export function systemFinding({ platform, arch, glibc, bash }: System): Finding {
  const what = "System";
  const name = `${platform} ${arch}`;
  if (platform === "linux") {
    if (glibc !== undefined) return { what, found: `${name}, glibc ${glibc}` };
    const note =
      "Locks between processes are files here, because the kernel's need a native part built for musl.";
    return { what, found: `${name}, musl`, note };
  }
  if (platform !== "win32") return { what, found: name };
  const found = `${name}, shell ${bash ?? "cmd.exe"}`;
  if (bash === undefined)
    return {
      what,
      found,
      todo: "Rules for commands and models expect a POSIX shell. Install Git for Windows, and put its bash.exe on the PATH.",
    };
  const note = "If Fairlead is killed, commands that it started may go on: there is no watchdog on Windows.";
  return { what, found, note };
}
