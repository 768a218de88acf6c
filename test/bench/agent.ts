import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

interface Answer {
  result: unknown;
  error: unknown;
}

/** What stands behind the keys, without a schema: the client's own work must not count. */
function dig(value: unknown, ...keys: string[]): unknown {
  let found = value;
  for (const key of keys) {
    if (typeof found !== "object" || found === null) return undefined;
    found = Reflect.get(found, key);
  }
  return found;
}

/** An agent process driven by hand, so that the client's own work does not count. */
export class BenchAgent {
  readonly #child: ChildProcess;
  readonly #answers = new Map<number, (answer: Answer) => void>();
  #rest = "";
  #nextId = 0;
  /** Characters of text that arrived. */
  text = "";
  onText: (() => void) | undefined;

  constructor(program: readonly string[], env: Record<string, string | undefined>) {
    this.#child = spawn(process.execPath, program, { stdio: ["pipe", "pipe", "inherit"], env });
    this.#child.stdout?.setEncoding("utf8").on("data", (chunk: string) => this.#read(chunk));
  }

  request(method: string, params: unknown): Promise<Answer> {
    const id = this.#nextId++;
    const answer = new Promise<Answer>((resolve) => this.#answers.set(id, resolve));
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

  async prompt(sessionId: string, text: string): Promise<void> {
    const { error } = await this.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
    if (error !== undefined) throw new Error(JSON.stringify(error));
  }

  /** Resident memory of the process and its children, in MB. */
  residentMb(): number {
    return treeOf(this.#child.pid ?? 0).reduce((sum, pid) => sum + residentKb(pid), 0) / 1024;
  }

  /** Processor time of the process so far, in ms. */
  cpuMs(): number {
    const fields = readFileSync(`/proc/${this.#child.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  async close(): Promise<void> {
    const exited = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.stdin?.end();
    await exited;
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#take(JSON.parse(line));
  }

  #take(message: unknown): void {
    const text = dig(message, "params", "update", "content", "text");
    if (typeof text === "string") {
      this.text += text;
      this.onText?.();
    }
    const id = dig(message, "id");
    if (typeof id !== "number" || dig(message, "method") !== undefined) return;
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
      // It ended while we looked.
    }
  }
  const tree = [root];
  for (const pid of tree) for (const [child, parent] of parents) if (parent === pid) tree.push(child);
  return tree;
}

function residentKb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
}
