import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { text } from "node:stream/consumers";

interface Answer {
  result: unknown;
  error: unknown;
}

/** Reads nested keys without a schema: the client's own work must not count. */
export function dig(value: unknown, ...keys: string[]): unknown {
  let found = value;
  for (const key of keys) {
    if (typeof found !== "object" || found === null) return undefined;
    found = Reflect.get(found, key);
  }
  return found;
}

/** Timeout in ms: longer than any request of the bench on a loaded machine. */
const longestRequest = 120_000;

/** An agent process driven by hand, so that the client's own work does not count. */
export class BenchAgent {
  readonly #child: ChildProcess;
  readonly #errors: Promise<string>;
  readonly #answers = new Map<number, (answer: Answer) => void>();
  #rest = "";
  #nextId = 0;
  /** The text that arrived, by session. */
  readonly texts = new Map<string, string>();
  /** Characters of all lines so far, nearly all of which are bytes. */
  received = 0;
  onText: ((text: string) => void) | undefined;

  constructor(program: readonly string[], env: Record<string, string | undefined>) {
    this.#child = spawn(process.execPath, program, { stdio: ["pipe", "pipe", "pipe"], env });
    this.#child.stdout?.setEncoding("utf8").on("data", (chunk: string) => this.#read(chunk));
    this.#errors = this.#child.stderr === null ? Promise.resolve("") : text(this.#child.stderr);
  }

  request(method: string, params: unknown): Promise<Answer> {
    const id = this.#nextId++;
    const answer = new Promise<Answer>((resolve, reject) => {
      const giveUp = () => {
        this.signal("SIGKILL");
        reject(new Error(`No answer to ${method} in ${longestRequest / 1_000} s.`));
      };
      const timer = setTimeout(giveUp, longestRequest);
      this.#answers.set(id, (received) => {
        clearTimeout(timer);
        resolve(received);
      });
    });
    this.#child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return answer;
  }

  initialize(): Promise<Answer> {
    return this.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  }

  async newSession(cwd: string): Promise<string> {
    const { result } = await this.request("session/new", { cwd, mcpServers: [] });
    return String(dig(result, "sessionId"));
  }

  load(sessionId: string, cwd: string): Promise<Answer> {
    return this.request("session/load", { sessionId, cwd, mcpServers: [] });
  }

  async prompt(sessionId: string, text: string): Promise<void> {
    const { error } = await this.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
    if (error !== undefined) throw new Error(JSON.stringify(error));
  }

  /** Resident memory of the process and its children, in MB. */
  residentMb(): number {
    return treeOf(this.#pid).reduce((sum, pid) => sum + statusOf(pid, "VmRSS"), 0) / 1024;
  }

  /** Peak resident memory of the process itself, in MB. */
  peakMb(): number {
    return statusOf(this.#pid, "VmHWM") / 1024;
  }

  /** Processor time of the process's threads so far, in ms. */
  cpuMs(): number {
    const threads = readdirSync(`/proc/${this.#pid}/task`);
    return threads.reduce((sum, thread) => sum + usedMs(`/proc/${this.#pid}/task/${thread}/schedstat`), 0);
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Resolves with the process's stderr output. */
  async close(): Promise<string> {
    const exited = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.stdin?.end();
    await exited;
    return this.#errors;
  }

  get #pid(): number {
    return this.#child.pid ?? 0;
  }

  #read(chunk: string): void {
    this.received += chunk.length;
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#take(JSON.parse(line));
  }

  #take(message: unknown): void {
    const update = dig(message, "params", "update");
    const text = dig(update, "content", "text");
    if (dig(update, "sessionUpdate") === "agent_message_chunk" && typeof text === "string") {
      const session = String(dig(message, "params", "sessionId"));
      this.texts.set(session, (this.texts.get(session) ?? "") + text);
      this.onText?.(text);
    }
    const id = dig(message, "id");
    const method = dig(message, "method");
    if (id !== undefined && method !== undefined)
      throw new Error(`The agent asks ${JSON.stringify(method)}, which the bench does not answer.`);
    if (typeof id !== "number") return;
    this.#answers.get(id)?.({ result: dig(message, "result"), error: dig(message, "error") });
    this.#answers.delete(id);
  }
}

function treeOf(root: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      parents.set(Number(name), Number(stat.split(") ")[1]?.split(" ")[1]));
    } catch {
      // The process ended meanwhile.
    }
  }
  const tree = [root];
  for (const pid of tree) for (const [child, parent] of parents) if (parent === pid) tree.push(child);
  return tree;
}

/** In KB; 0 for a process that ended meanwhile. */
function statusOf(pid: number, field: string): number {
  try {
    return Number(
      new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0,
    );
  } catch {
    return 0;
  }
}

/** 0 for a thread that ended meanwhile. */
function usedMs(path: string): number {
  try {
    return Number(readFileSync(path, "utf8").split(" ")[0]) / 1e6;
  } catch {
    return 0;
  }
}
