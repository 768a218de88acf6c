import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { execa } from "execa";
import { toList, toObject, toText } from "../json.ts";

/** Milliseconds between two reads of the process table, which has no events. */
const pollIntervalMs = 25;

export interface RunningProcess {
  pid: number;
  parent: number;
  command: string;
}

/** Lists all processes, by the means of each system. */
async function runningProcesses(): Promise<RunningProcess[]> {
  if (process.platform === "linux") return linuxProcesses();
  if (process.platform === "win32") return windowsProcesses();
  // Without a terminal the ps of macOS cuts lines after 79 characters unless it is asked twice for wide ones.
  const columns = ["pid=", "ppid=", "stat=", "command="].flatMap((column) => ["-o", column]);
  const { stdout } = await execa("ps", ["-axww", ...columns]);
  return stdout.split("\n").flatMap((line) => {
    const [, pid, parent, command] = /^\s*(\d+)\s+(\d+)\s+[^Z\s]\S*\s+(.*)$/.exec(line) ?? [];
    return command === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), command }];
  });
}

export async function findChildren(pid: number): Promise<RunningProcess[]> {
  return (await runningProcesses()).filter(({ parent }) => parent === pid);
}

/** Returns the children of a process, their children and so on. */
export async function findDescendants(pid: number | undefined): Promise<RunningProcess[]> {
  const all = await runningProcesses();
  const found = all.filter(({ parent }) => parent === pid);
  for (const one of found) found.push(...all.filter(({ parent }) => parent === one.pid));
  return found;
}

/** Returns the process unless it has ended. */
export async function findProcess(pid: number): Promise<RunningProcess | undefined> {
  return (await runningProcesses()).find((one) => one.pid === pid);
}

/** Whether the process exists and is not a zombie. */
export async function isRunning(pid: number): Promise<boolean> {
  if (process.platform === "win32") return exists(pid);
  return (await findProcess(pid)) !== undefined;
}

/** Returns the resident memory of a process in kilobytes. A small Linux has no `ps`. */
export async function readMemory(pid: number): Promise<number> {
  if (process.platform !== "linux")
    return Number((await execa("ps", ["-o", "rss=", "-p", String(pid)])).stdout.trim());
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(await readGone(`/proc/${pid}/status`))?.[1]);
}

/**
 * Lists processes whose environment has the variable with this value. Empty except on Linux, because other
 * systems do not show it.
 */
export async function findProcessesWith(variable: string, value: string): Promise<RunningProcess[]> {
  if (process.platform !== "linux") return [];
  const pids = await linuxPids();
  const marked = await Promise.all(pids.map((pid) => hasVariable(pid, `${variable}=${value}`)));
  return present(await Promise.all(pids.filter((_, at) => marked[at]).map(linuxProcess)));
}

/**
 * Returns the processes with this variable that still run after the deadline, except `but`. Returns at once if there are
 * none.
 */
export async function findLeftoversWith(
  variable: string,
  value: string,
  { deadlineMs = 15_000, but }: { deadlineMs?: number; but?: number | undefined } = {},
): Promise<RunningProcess[]> {
  const until = performance.now() + deadlineMs;
  const check = async () => (await findProcessesWith(variable, value)).filter(({ pid }) => pid !== but);
  let left = await check();
  while (left.length > 0 && performance.now() < until) {
    await delay(pollIntervalMs);
    left = await check();
  }
  return left;
}

async function windowsProcesses(): Promise<RunningProcess[]> {
  const list = "Get-CimInstance Win32_Process | Select-Object ProcessId, ParentProcessId, CommandLine";
  const { stdout } = await execa("powershell.exe", ["-NoProfile", "-Command", `${list} | ConvertTo-Json`]);
  return toList(JSON.parse(stdout)).map((one) => {
    const { ProcessId: pid, ParentProcessId: parent, CommandLine: command } = toObject(one);
    return { pid: Number(pid), parent: Number(parent), command: toText(command) ?? "" };
  });
}

/** Does not start a program, as a list of all processes does. */
function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const linuxProcesses = async (): Promise<RunningProcess[]> =>
  present(await Promise.all((await linuxPids()).map(linuxProcess)));

const linuxPids = async (): Promise<number[]> =>
  (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);

const present = <T>(values: (T | undefined)[]): T[] => values.filter((value) => value !== undefined);

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

/** Returns an empty text if the process ended meanwhile or belongs to another user. */
async function readGone(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch {
    return "";
  }
}
