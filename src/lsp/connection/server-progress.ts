import { z } from "zod";
import { deferred, type Deferred, orAfter, orWhenAborted } from "../../base/async.ts";
import { beginningOf } from "../../base/text/excerpt.ts";

/** Maximum number of tasks that are tracked; more are ignored. */
const taskLimit = 100;
const titleLimit = 80;

/** A server's reports about its long tasks, such as indexing the project. */
export class ServerProgress {
  readonly #tasks = new Map<string | number, Task>();
  #initializedAt: number | undefined;
  #hasFinished = false;
  #change: Deferred<void> = deferred();

  /** Whether a task is running. */
  get isBusy(): boolean {
    return this.#tasks.size > 0;
  }

  /** Whether the server has completed a task that it reported. */
  get hasFinished(): boolean {
    return this.#hasFinished;
  }

  /** Milliseconds since the server was initialized; 0 before. */
  get ageMs(): number {
    return this.#initializedAt === undefined ? 0 : performance.now() - this.#initializedAt;
  }

  /** The server is initialized: from now on it may register methods and begin tasks. */
  begin(): void {
    this.#initializedAt = performance.now();
  }

  /** Records a `$/progress` notification. */
  note(params: unknown): void {
    const parsed = progressSchema.safeParse(params).data;
    if (parsed === undefined) return;
    const { token, value } = parsed;
    const known = this.#tasks.get(token);
    if (value.kind === "end") {
      this.#tasks.delete(token);
      this.#hasFinished ||= known !== undefined;
    } else if (known !== undefined || this.#tasks.size < taskLimit)
      this.#tasks.set(token, { ...known, ...value, title: value.title ?? known?.title ?? "" });
    const change = this.#change;
    this.#change = deferred();
    change.resolve();
  }

  /** Forgets all tasks: the server has ended. */
  clear(): void {
    this.#tasks.clear();
    this.#change.resolve();
  }

  /** The running task, as "Indexing 42 %"; empty if none runs. */
  describe(): string {
    const [task] = this.#tasks.values();
    if (task === undefined) return "";
    const title = beginningOf(
      [task.title, task.message ?? ""].join(" ").replaceAll(/\s+/g, " ").trim(),
      titleLimit,
    );
    return task.percentage === undefined ? title : `${title} ${Math.round(task.percentage)} %`;
  }

  /** Waits until no task runs, at most for the time. `onChange` gets the running task. */
  async waitUntilIdle(limitMs: number, signal: AbortSignal, onChange: (text: string) => void): Promise<void> {
    const end = performance.now() + limitMs;
    while (this.isBusy && !signal.aborted && performance.now() < end) {
      onChange(this.describe());
      await this.#next(end, signal);
    }
  }

  /** Waits until a task begins, at most for the time. */
  async waitUntilBusy(limitMs: number, signal: AbortSignal): Promise<void> {
    const end = performance.now() + limitMs;
    while (!this.isBusy && !signal.aborted && performance.now() < end) await this.#next(end, signal);
  }

  async #next(end: number, signal: AbortSignal): Promise<void> {
    const change = orAfter(this.#change.promise, Math.max(1, end - performance.now()), undefined);
    await orWhenAborted(change, signal, undefined);
  }
}

interface Task {
  readonly title: string;
  readonly message?: string | undefined;
  readonly percentage?: number | undefined;
}

const progressSchema = z.object({
  token: z.union([z.string(), z.number()]),
  value: z.object({
    kind: z.enum(["begin", "report", "end"]),
    title: z.string().optional().catch(undefined),
    message: z.string().optional().catch(undefined),
    percentage: z.number().optional().catch(undefined),
  }),
});
