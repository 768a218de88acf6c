import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { win32 } from "node:path";
import { codeOf } from "../../base/errors.ts";
import { sleep } from "../../base/async.ts";
import { childProcess } from "./child-process.ts";

/** Environment variable that marks a command's processes, to find those that left its group. */
export const PROCESS_MARK = "FAIRLEAD_PROCESS";

/** Time between TERM and KILL: enough for a server to close its files, short enough after a cancellation. */
const KILL_AFTER_MS = 3_000;
/** The same at program exit: clients kill the program about 100 ms after closing its input. */
const URGENT_KILL_AFTER_MS = 25;
/** Time after KILL until giving up: a process in an uninterruptible wait cannot be ended. */
const GIVE_UP_AFTER_MS = 400;
const FIRST_POLL_MS = 10;
const SLOWEST_POLL_MS = 160;

interface ProcessEntry {
  pid: number;
  parent: number;
  group: number;
}

/**
 * Members of the groups, processes with `mark` in their environment, and their descendants.
 * Marks and descendants are found on Linux only, by /proc.
 */
export interface ProcessTree {
  group?: number;
  /** Groups whose first process has ended. If it exists again, the id was reused by a foreign group. */
  background?: readonly number[];
  mark: string;
}

/**
 * Ends the whole tree: TERM, then KILL after 3 s, or soon after `urgent` aborts because the program exits.
 * Resolves when all processes have ended, at most 0.4 s after KILL.
 */
export async function endTree(tree: ProcessTree, urgent?: AbortSignal): Promise<void> {
  if (process.platform === "win32") return endWindowsTree(tree);
  const start = performance.now();
  const elapsed = () => performance.now() - start;
  const terminated = new Set<number>();
  let killAt = KILL_AFTER_MS;
  let giveUpAt = Infinity;
  for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(pauseMs * 2, SLOWEST_POLL_MS)) {
    if (urgent?.aborted) killAt = Math.min(killAt, elapsed() + URGENT_KILL_AFTER_MS);
    const kill = elapsed() >= killAt;
    const alive = await listRunning(tree);
    if (alive.length === 0 || elapsed() >= giveUpAt) return;
    if (kill) {
      for (const pid of alive) send(pid, "SIGKILL");
      // Listing processes may be slow, so the time starts at the first KILL.
      giveUpAt = Math.min(giveUpAt, elapsed() + GIVE_UP_AFTER_MS);
    } else terminate(alive, terminated);
    const pause = kill ? FIRST_POLL_MS : Math.max(1, Math.min(pauseMs, killAt - elapsed()));
    await sleep(pause, urgent?.aborted ? undefined : urgent);
  }
}

/** Kills a group immediately, without waiting. */
export function killGroup(group: number): void {
  send(process.platform === "win32" ? group : -group, "SIGKILL");
}

/** Returns the groups that still have a running member, ignoring zombies. */
export async function findRunningGroups(groups: readonly number[]): Promise<number[]> {
  if (process.platform === "win32") return [];
  const alive = groups.filter((group) => isAlive(-group));
  const entries = alive.length === 0 ? undefined : await listProcesses();
  if (entries === undefined) return alive;
  const known = new Set(entries.map(({ group }) => group));
  return alive.filter((group) => known.has(group));
}

function terminate(pids: readonly number[], terminated: Set<number>): void {
  for (const pid of pids.filter((pid) => !terminated.has(pid))) {
    terminated.add(pid);
    send(pid, "SIGTERM");
    // A stopped process handles TERM only after it continues.
    send(pid, "SIGCONT");
  }
}

/** Process ids of the tree; without /proc the groups as negative numbers, as kill(2) accepts them. */
async function listRunning({ group, background = [], mark }: ProcessTree): Promise<number[]> {
  const entries = await listProcesses();
  const own = group === undefined ? [] : [group];
  if (entries === undefined) return [...own, ...background].map((id) => -id).filter(isAlive);
  const pids = new Set(entries.map(({ pid }) => pid));
  const groups = new Set([...own, ...background.filter((id) => !pids.has(id))]);
  const marked = await Promise.all(
    entries.map(async (entry) => groups.has(entry.group) || (await hasMark(entry.pid, mark))),
  );
  const members = new Set(entries.filter((_, index) => marked[index]).map((entry) => entry.pid));
  addDescendants(members, entries);
  members.delete(process.pid);
  return [...members];
}

/** Finds processes without the mark that left the group, as long as their parent still runs. */
function addDescendants(members: Set<number>, entries: readonly ProcessEntry[]): void {
  let size: number;
  do {
    size = members.size;
    for (const { pid, parent } of entries) if (members.has(parent)) members.add(pid);
  } while (members.size > size);
}

/** Undefined outside Linux, without /proc, or if no file can be opened. */
async function listProcesses(): Promise<ProcessEntry[] | undefined> {
  const names = process.platform === "linux" ? await listProcNames() : undefined;
  const pids = names?.filter((name) => /^\d+$/.test(name)).map(Number);
  const entries = pids && (await Promise.all(pids.map(readEntry)));
  return entries?.filter((entry) => entry !== undefined);
}

async function listProcNames(): Promise<string[] | undefined> {
  try {
    return await readdir("/proc");
  } catch {
    return undefined;
  }
}

/** Parses /proc/PID/stat, see proc_pid_stat(5); undefined for zombies and ended processes. */
async function readEntry(pid: number): Promise<ProcessEntry | undefined> {
  const stat = await readProcFile(pid, "stat");
  // The name may contain spaces and parentheses, so fields are counted after the last one.
  const [state, parent, group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (!state || state === "Z" || state === "X") return undefined;
  return { pid, parent: Number(parent), group: Number(group) };
}

async function hasMark(pid: number, mark: string): Promise<boolean> {
  const environment = await readProcFile(pid, "environ");
  const start = environment.startsWith(`${PROCESS_MARK}=`)
    ? 0
    : environment.indexOf(`\0${PROCESS_MARK}=`) + 1;
  if (start === 0 && !environment.startsWith(PROCESS_MARK)) return false;
  return environment.slice(start).split("\0", 1)[0]?.includes(mark) ?? false;
}

/** Empty if the process has ended or belongs to another user. */
async function readProcFile(pid: number, name: string): Promise<string> {
  try {
    return await readFile(`/proc/${pid}/${name}`, "latin1");
  } catch {
    return "";
  }
}

function isAlive(pid: number): boolean {
  return send(pid, 0);
}

function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

async function endWindowsTree({ group }: ProcessTree): Promise<void> {
  // A background process has no parent by which it could be found.
  if (group === undefined) return;
  // By its name alone, Windows would search the working directory first.
  const program = win32.join(process.env["SystemRoot"] ?? "C:\\Windows", "System32", "taskkill.exe");
  const taskkill = childProcess().spawn(program, ["/pid", String(group), "/T", "/F"], {
    stdio: "ignore",
    windowsHide: true,
  });
  // Fails if the tree has already ended.
  await Promise.race([once(taskkill, "exit"), once(taskkill, "error"), sleep(KILL_AFTER_MS)]);
}
