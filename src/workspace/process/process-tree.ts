import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { codeOf } from "../../base/errors.ts";
import { sleep } from "../../base/async.ts";

/** The variable that marks a command's processes, so that those which left its group are found. */
export const PROCESS_MARK = "FAIRLEAD_PROCESS";

/** Time between TERM and KILL: enough for a server to close its files, short enough for a person who cancelled. */
const KILL_AFTER_MS = 3_000;
/** The same when the program ends: its client kills it about 100 ms after it went away. */
const URGENT_KILL_AFTER_MS = 25;
/** How long KILL may take before the tree is given up: a process in an uninterruptible wait cannot be ended. */
const GIVE_UP_AFTER_MS = 400;
const FIRST_LOOK_MS = 10;
const SLOWEST_LOOK_MS = 160;

interface ProcessEntry {
  pid: number;
  parent: number;
  group: number;
}

/**
 * Which processes are meant: the members of the groups, those with `mark` in their environment, and all their
 * descendants. Marks and descendants are found in Linux's /proc only; elsewhere the groups are all there is.
 */
export interface ProcessTree {
  group?: number;
  /** Groups whose first process has ended. One that has such a process again is a later, foreign group. */
  background?: readonly number[];
  mark: string;
}

/**
 * Ends the whole tree: TERM, and KILL after 3 s, or soon after `urgent` aborts because the program itself ends.
 * Resolves when nothing of it is left, at most 0.4 s after KILL.
 */
export async function endTree(tree: ProcessTree, urgent?: AbortSignal): Promise<void> {
  if (process.platform === "win32") return endWindowsTree(tree);
  const start = performance.now();
  const elapsed = () => performance.now() - start;
  const told = new Set<number>();
  let killAt = KILL_AFTER_MS;
  let giveUpAt = Infinity;
  for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, SLOWEST_LOOK_MS)) {
    if (urgent?.aborted) killAt = Math.min(killAt, elapsed() + URGENT_KILL_AFTER_MS);
    const kill = elapsed() >= killAt;
    const alive = await survivors(tree);
    if (alive.length === 0 || elapsed() >= giveUpAt) return;
    if (kill) {
      for (const pid of alive) send(pid, "SIGKILL");
      // A look may take long: the time runs from the first KILL, which everybody gets.
      giveUpAt = Math.min(giveUpAt, elapsed() + GIVE_UP_AFTER_MS);
    } else terminate(alive, told);
    const pause = kill ? FIRST_LOOK_MS : Math.max(1, Math.min(pauseMs, killAt - elapsed()));
    await sleep(pause, urgent?.aborted ? undefined : urgent);
  }
}

/** Kills a group at once, without looking or waiting. */
export function killGroup(group: number): void {
  send(process.platform === "win32" ? group : -group, "SIGKILL");
}

/** The groups of which a member, zombies aside, still runs. */
export async function runningGroups(groups: readonly number[]): Promise<number[]> {
  if (process.platform === "win32") return [];
  const alive = groups.filter((group) => isAlive(-group));
  const entries = alive.length === 0 ? undefined : await runningProcesses();
  if (entries === undefined) return alive;
  const known = new Set(entries.map(({ group }) => group));
  return alive.filter((group) => known.has(group));
}

function terminate(pids: readonly number[], told: Set<number>): void {
  for (const pid of pids.filter((pid) => !told.has(pid))) {
    told.add(pid);
    send(pid, "SIGTERM");
    // A stopped process learns of TERM only when it goes on.
    send(pid, "SIGCONT");
  }
}

/** Process ids of the tree; where nobody lists processes the groups as negative numbers, as kill(2) takes them. */
async function survivors({ group, background = [], mark }: ProcessTree): Promise<number[]> {
  const entries = await runningProcesses();
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

/** Catches those that emptied their environment and left the group while a parent of theirs still runs. */
function addDescendants(members: Set<number>, entries: readonly ProcessEntry[]): void {
  let size: number;
  do {
    size = members.size;
    for (const { pid, parent } of entries) if (members.has(parent)) members.add(pid);
  } while (members.size > size);
}

/** Undefined off Linux, and where no /proc is mounted or no file can be opened any more. */
async function runningProcesses(): Promise<ProcessEntry[] | undefined> {
  const names = process.platform === "linux" ? await namesInProc() : undefined;
  const pids = names?.filter((name) => /^\d+$/.test(name)).map(Number);
  const entries = pids && (await Promise.all(pids.map(readEntry)));
  return entries?.filter((entry) => entry !== undefined);
}

async function namesInProc(): Promise<string[] | undefined> {
  try {
    return await readdir("/proc");
  } catch {
    return undefined;
  }
}

/** From /proc/PID/stat, see proc_pid_stat(5); undefined for zombies and for processes that are gone. */
async function readEntry(pid: number): Promise<ProcessEntry | undefined> {
  const stat = await readProcFile(pid, "stat");
  // The name may hold blanks and brackets, so the fields are counted from its last bracket.
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

/** Empty when the process is gone or belongs to somebody else. */
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
  // A background process has no parent left by which it could be found.
  if (group === undefined) return;
  const taskkill = spawn("taskkill", ["/pid", String(group), "/T", "/F"], {
    stdio: "ignore",
    windowsHide: true,
  });
  // It fails where the tree has already ended, which is what was wanted.
  await Promise.race([once(taskkill, "exit"), once(taskkill, "error"), sleep(KILL_AFTER_MS)]);
}
