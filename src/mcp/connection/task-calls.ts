import { z } from "zod";
import { sleep } from "../../base/async.ts";
import { CallClock } from "./call-clock.ts";
import type { McpConnection, RequestOptions, RequestResult } from "./connection.ts";
import type { RequestFailure } from "./failures.ts";

/** How long the server is asked to store the task, in milliseconds. */
const lifeMs = 60 * 60_000;
/** Default and bounds of the time between two questions about a task. */
const pollMs = { usual: 1_000, shortest: 100, longest: 15_000 };
/** How long cancelling a task may take. */
const cancelTimeoutMs = 5_000;

const taskSchema = z.looseObject({
  taskId: z.string(),
  status: z.string(),
  statusMessage: z.string().nullish().catch(undefined),
  pollInterval: z.number().nullish().catch(undefined),
});
type Task = z.output<typeof taskSchema>;
const createdSchema = z.looseObject({ task: taskSchema });

type Requester = Pick<McpConnection, "request">;

/**
 * Calls a tool as a task of the server (protocol of 2025-11-25): asks for its state until it ends, then for its result. Each
 * answer restarts the clock. A call that ends early cancels the task.
 */
export async function callAsTask<T>(
  connection: Requester,
  params: Record<string, unknown>,
  answer: z.ZodType<T>,
  options: RequestOptions,
): Promise<RequestResult<T>> {
  const begun = await connection.request(
    "tools/call",
    { ...params, task: { ttl: lifeMs } },
    z.unknown(),
    options,
  );
  if (begun.outcome === "failed") return begun;
  const created = createdSchema.safeParse(begun.value);
  // Servers may answer without a task.
  if (!created.success) return parseAnswer(answer, begun.value);
  const call = new TaskCall(connection, created.data.task, answer, options);
  return call.run();
}

function parseAnswer<T>(answer: z.ZodType<T>, value: unknown): RequestResult<T> {
  const parsed = answer.safeParse(value);
  if (parsed.success) return { outcome: "answered", value: parsed.data };
  return failed("its answer does not follow the protocol");
}

const failed = (reason: string) =>
  ({ outcome: "failed", failure: { kind: "failed", reason } }) as const satisfies RequestResult<never>;

/** A running task of a server. */
class TaskCall<T> {
  readonly #connection: Requester;
  readonly #answer: z.ZodType<T>;
  readonly #options: RequestOptions;
  #task: Task;
  #shown: string | undefined;
  #result: Promise<RequestResult<T>> | undefined;

  constructor(connection: Requester, task: Task, answer: z.ZodType<T>, options: RequestOptions) {
    this.#connection = connection;
    this.#task = task;
    this.#answer = answer;
    this.#options = options;
  }

  async run(): Promise<RequestResult<T>> {
    const { clock } = this.#options;
    for (;;) {
      this.#showStatus();
      const { status, pollInterval } = this.#task;
      if (status === "completed" || status === "failed") return this.#end(await this.#fetchResult());
      if (status === "cancelled") return failed(`it cancelled the task${this.#message}`);
      // The server sends its questions to the user while it is asked for the result.
      if (status === "input_required") void this.#fetchResult();
      const delayMs = Math.min(Math.max(pollInterval ?? pollMs.usual, pollMs.shortest), pollMs.longest);
      await sleep(delayMs, clock.signal);
      const polled = await this.#ask("tasks/get", taskSchema);
      if (polled.outcome === "failed") return this.#end(polled);
      this.#task = polled.value;
      clock.restart();
    }
  }

  get #message(): string {
    const { statusMessage } = this.#task;
    return statusMessage ? `: ${statusMessage}` : "";
  }

  #showStatus(): void {
    const { statusMessage } = this.#task;
    if (!statusMessage || statusMessage === this.#shown) return;
    this.#shown = statusMessage;
    this.#options.onProgress?.({ message: statusMessage });
  }

  #fetchResult(): Promise<RequestResult<T>> {
    this.#result ??= this.#ask("tasks/result", this.#answer);
    return this.#result;
  }

  #ask<A>(method: string, answer: z.ZodType<A>): Promise<RequestResult<A>> {
    const { clock } = this.#options;
    return this.#connection.request(method, { taskId: this.#task.taskId }, answer, { clock });
  }

  /** Cancels the task if the call ends before it. A task is not repeated: it may continue without the connection. */
  #end(result: RequestResult<T>): RequestResult<T> {
    if (result.outcome === "answered") return result;
    if (this.#options.clock.signal.aborted) void this.#cancel();
    return { outcome: "failed", failure: this.#describe(result.failure) };
  }

  #describe(failure: RequestFailure): RequestFailure {
    if (failure.kind === "dropped") return { ...failure, isTask: true };
    const isOfTask = failure.kind === "failed" && this.#task.status === "failed";
    return isOfTask ? { kind: "failed", reason: `${failure.reason}${this.#message}` } : failure;
  }

  async #cancel(): Promise<void> {
    const clock = new CallClock(cancelTimeoutMs);
    const { taskId } = this.#task;
    await this.#connection.request("tasks/cancel", { taskId }, z.unknown(), { clock });
    clock.end();
  }
}
