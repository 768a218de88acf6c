import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { execa } from "execa";

/** Milliseconds between two looks at the process table, which announces nothing. */
const lookEveryMs = 25;

export interface RunningProcess {
  pid: number;
  parent: number;
  command: string;
}

/** All processes that `ps` or `/proc` shows; empty on systems that have neither. */
async function runningProcesses(): Promise<RunningProcess[]> {
  if (process.platform === "linux") return linuxProcesses();
  if (process.platform === "win32") return [];
  const { stdout } = await execa("ps", ["-axo", "pid=,ppid=,command="]);
  return stdout.split("\n").flatMap((line) => {
    const [, pid, parent, command] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return command === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), command }];
  });
}

export async function childrenOf(pid: number): Promise<RunningProcess[]> {
  return (await runningProcesses()).filter(({ parent }) => parent === pid);
}

/** Processes whose environment has the variable with this value. Only Linux tells; elsewhere there are none. */
export async function processesWith(variable: string, value: string): Promise<RunningProcess[]> {
  if (process.platform !== "linux") return [];
  const all = await linuxProcesses();
  const marked = await Promise.all(all.map(({ pid }) => hasVariable(pid, `${variable}=${value}`)));
  return all.filter((_, at) => marked[at]);
}

/** The processes with this variable that are still there after the deadline; usually none, and then at once. */
export async function leftoversWith(
  variable: string,
  value: string,
  deadlineMs = 3000,
): Promise<RunningProcess[]> {
  const until = performance.now() + deadlineMs;
  let left = await processesWith(variable, value);
  while (left.length > 0 && performance.now() < until) {
    await delay(lookEveryMs);
    left = await processesWith(variable, value);
  }
  return left;
}

async function linuxProcesses(): Promise<RunningProcess[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(pids.map(linuxProcess));
  return found.filter((one) => one !== undefined);
}

/** The name in `stat` may hold spaces and brackets, so the fields begin after the last bracket: state, parent. */
async function linuxProcess(pid: number): Promise<RunningProcess | undefined> {
  const stat = await readGone(`/proc/${pid}/stat`);
  const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (parent === undefined || state === "Z") return undefined;
  const command = (await readGone(`/proc/${pid}/cmdline`)).replaceAll("\0", " ").trim();
  return { pid, parent: Number(parent), command };
}

async function hasVariable(pid: number, entry: string): Promise<boolean> {
  return (await readGone(`/proc/${pid}/environ`)).split("\0").includes(entry);
}

/** Processes may end, or belong to others, between the listing and the look. */
async function readGone(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch {
    return "";
  }
}
