import { errorFields } from "../base/error-fields.ts";
import { deferred, type Deferred, orAfter } from "../base/async.ts";
import { excerpt } from "../base/text/excerpt.ts";
import type { Log } from "../base/log.ts";
import type { NodeProgram, NodeProgramOptions } from "../workspace/process/node-program.ts";
import { type HostAnswer, type HostRequest, parseHostMessage } from "./protocol.ts";

/** A host that answers no ping within this time is stuck in a loop. */
const pingLimitMs = 2_000;
/** Time until the host begins a request; it may have to start first, on a busy machine. */
const startLimitMs = 20_000;
const lostMessage = "the plugin process was ended; it is unknown whether the call completed";
/** Maximum number of characters that one host may add to the log. */
const logLimit = 100_000;

/** Maximum length of a module's error, which is shown to the model and the user. */
const errorLimit = 2_000;

/** Starts the host process. Its environment contains no credentials. */
export type StartHost = (options: NodeProgramOptions) => NodeProgram;

export interface PluginHostOptions {
  readonly start: StartHost;
  readonly cwd: string;
  readonly confined: NodeProgramOptions["confined"];
  readonly log: Log;
  /**
   * Called when the host ended or was ended because it was stuck. `why` is a phrase, `suspect` the module it
   * was running.
   */
  onLost(why: string, suspect: string | undefined): void;
}

/** Response value, or why there is none. `lost` means that the host ended. */
export type HostResult =
  | { outcome: "value"; value: unknown }
  | { outcome: "refusal" | "bug" | "input" | "late" | "lost"; message: string };

/** A request without the id. */
export type HostRequestBody = HostRequest extends infer Request
  ? Request extends HostRequest
    ? Omit<Request, "id">
    : never
  : never;

interface PendingRequest {
  readonly answer: Deferred<HostResult>;
  readonly began: Deferred<undefined>;
  readonly module?: string | undefined;
}

/** The process that runs plugin modules. Its methods never reject and never hang. */
export class PluginHost {
  readonly #options: PluginHostOptions;
  readonly #program: NodeProgram;
  readonly #pending = new Map<number, PendingRequest>();
  /** Ids of requests that the host has begun, newest last. */
  #begun: number[] = [];
  #lastId = 0;
  #printed = 0;
  #isLost = false;

  constructor(options: PluginHostOptions) {
    this.#options = options;
    this.#program = options.start({
      cwd: options.cwd,
      confined: options.confined,
      onMessage: (message) => this.#read(message),
      onOutput: (text) => this.#print(text),
      onExit: (reason) => this.#lose(`it ended (${reason})`),
    });
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** Sends a request. The time limit starts when the host begins it; after that the host is pinged. */
  async request(request: HostRequestBody, limitMs: number, signal?: AbortSignal): Promise<HostResult> {
    if (this.#isLost) return { outcome: "lost", message: "the plugin process has ended" };
    const id = ++this.#lastId;
    const waiting = createPendingRequest(getModule(request));
    this.#pending.set(id, waiting);
    const abort = () => void this.#abort(id);
    signal?.addEventListener("abort", abort, { once: true });
    this.#program.send({ ...request, id });
    if (signal?.aborted) abort();
    try {
      const { began, answer } = waiting;
      await orAfter(Promise.race([began.promise, answer.promise]), startLimitMs, undefined);
      const answered = await orAfter(answer.promise, limitMs, undefined);
      if (answered !== undefined) return answered;
      await this.#abort(id);
      const late = { outcome: "late", message: `took more than ${limitMs / 1000} seconds` } as const;
      return this.#isLost ? { outcome: "lost", message: lostMessage } : late;
    } finally {
      this.#pending.delete(id);
      this.#begun = this.#begun.filter((other) => other !== id);
      signal?.removeEventListener("abort", abort);
    }
  }

  async end(how: "gently" | "quickly"): Promise<void> {
    this.#isLost = true;
    for (const { answer } of this.#pending.values())
      answer.resolve({ outcome: "lost", message: lostMessage });
    await this.#program.end(how);
  }

  kill(): void {
    this.#program.kill();
  }

  /** Aborts a request and checks that the host still responds. */
  async #abort(run: number): Promise<void> {
    if (this.#isLost) return;
    this.#program.send({ ask: "abort", run, id: ++this.#lastId });
    const id = ++this.#lastId;
    const pong = createPendingRequest(undefined);
    this.#pending.set(id, pong);
    this.#program.send({ ask: "ping", id });
    const answered = await orAfter(pong.answer.promise, pingLimitMs, undefined);
    this.#pending.delete(id);
    if (answered === undefined) return this.#lose("it did not respond and was ended");
    this.#pending.get(run)?.answer.resolve({ outcome: "late", message: "it was cancelled" });
  }

  #read(message: unknown): void {
    const read = parseHostMessage(message);
    if (read === undefined) return;
    if ("log" in read) return this.#print(read.log);
    if ("began" in read) return this.#begin(read.began);
    this.#pending.get(read.id)?.answer.resolve(toHostResult(read));
  }

  #begin(id: number): void {
    const waiting = this.#pending.get(id);
    if (waiting?.module === undefined) return;
    this.#begun.push(id);
    waiting.began.resolve(undefined);
  }

  #lose(why: string): void {
    if (this.#isLost) return;
    const suspect = this.#begun.map((id) => this.#pending.get(id)?.module).findLast((module) => module);
    // Report the cause first, because waiting callers read it next.
    this.#options.onLost(why, suspect);
    void this.end("quickly").catch((error: unknown) =>
      this.#options.log.error("plugin process did not end", errorFields(error)),
    );
  }

  #print(text: string): void {
    if (this.#printed > logLimit) return;
    this.#printed += text.length;
    const more = this.#printed > logLimit ? " (further output is not logged)" : "";
    this.#options.log.info(`plugins: ${text.trimEnd().slice(0, logLimit)}${more}`);
  }
}

function createPendingRequest(module: string | undefined): PendingRequest {
  return { answer: deferred<HostResult>(), began: deferred<undefined>(), module };
}

function getModule(request: HostRequestBody): string | undefined {
  if (!("module" in request)) return undefined;
  return typeof request.module === "string" ? request.module : request.module.name;
}

function toHostResult({ value, error }: HostAnswer): HostResult {
  if (error !== undefined) return { outcome: error.kind, message: excerpt(error.message, errorLimit) };
  try {
    return { outcome: "value", value: JSON.parse(value ?? "null") };
  } catch {
    // A module can write to the channel.
    return { outcome: "bug", message: "the response is not valid JSON" };
  }
}
