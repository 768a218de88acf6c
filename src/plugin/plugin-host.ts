import { errorFields } from "../base/error-fields.ts";
import { deferred, type Deferred, orAfter } from "../base/async.ts";
import { excerpt } from "../base/text/excerpt.ts";
import type { Log } from "../base/log.ts";
import type { NodeProgram, NodeProgramOptions } from "../workspace/process/node-program.ts";
import { type HostAnswer, type HostRequest, parseHostMessage } from "./protocol.ts";

/** A host that does not answer a word within this time is stuck in somebody's loop. */
const pingLimitMs = 2_000;
/** How long the host may take to turn to a request: it may have to start first, on a busy machine. */
const beginLimitMs = 20_000;
const lostMessage = "the process of plugins was ended; whether the call was done is not known";
/** Characters of what modules print that one host may add to the log. */
const printedLimit = 100_000;

/** Characters of what a module says of an error, which goes to the model and the person. */
const errorLimit = 2_000;

/** Starts the program that runs authors' modules. Its environment has no keys and no other credentials. */
export type StartHost = (options: NodeProgramOptions) => NodeProgram;

export interface PluginHostOptions {
  readonly start: StartHost;
  readonly cwd: string;
  readonly log: Log;
  /** The host is gone, or stuck and was ended. `why` is the end of a sentence, `suspect` the module that was in it. */
  onLost(why: string, suspect: string | undefined): void;
}

/** An answer's value, or why there is none. `lost` is the host's end, not the module's word. */
export type Asked =
  | { outcome: "value"; value: unknown }
  | { outcome: "refusal" | "bug" | "input" | "late" | "lost"; message: string };

/** A request without what the host adds. */
export type Ask = HostRequest extends infer Request
  ? Request extends HostRequest
    ? Omit<Request, "id">
    : never
  : never;

interface Waiting {
  readonly answer: Deferred<Asked>;
  readonly began: Deferred<undefined>;
  readonly module?: string | undefined;
}

/** The process that runs authors' modules. Never rejects, never hangs, whatever they do. */
export class PluginHost {
  readonly #options: PluginHostOptions;
  readonly #program: NodeProgram;
  readonly #waiting = new Map<number, Waiting>();
  /** Requests that the host has turned to, the newest last. */
  #began: number[] = [];
  #lastId = 0;
  #printed = 0;
  #isLost = false;

  constructor(options: PluginHostOptions) {
    this.#options = options;
    this.#program = options.start({
      cwd: options.cwd,
      onMessage: (message) => this.#read(message),
      onOutput: (text) => this.#print(text),
      onExit: (reason) => this.#lose(`it ended (${reason})`),
    });
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** Waits at most so long from when the host turns to it. Who does not answer in time is asked whether it is alive. */
  async ask(request: Ask, limitMs: number, signal?: AbortSignal): Promise<Asked> {
    if (this.#isLost) return { outcome: "lost", message: "the process of plugins has ended" };
    const id = ++this.#lastId;
    const waiting = newWaiting(moduleOf(request));
    this.#waiting.set(id, waiting);
    const abort = () => void this.#abort(id);
    signal?.addEventListener("abort", abort, { once: true });
    this.#program.send({ ...request, id });
    if (signal?.aborted) abort();
    try {
      const { began, answer } = waiting;
      await orAfter(Promise.race([began.promise, answer.promise]), beginLimitMs, undefined);
      const answered = await orAfter(answer.promise, limitMs, undefined);
      if (answered !== undefined) return answered;
      await this.#abort(id);
      const late = { outcome: "late", message: `took more than ${limitMs / 1000} seconds` } as const;
      return this.#isLost ? { outcome: "lost", message: lostMessage } : late;
    } finally {
      this.#waiting.delete(id);
      this.#began = this.#began.filter((began) => began !== id);
      signal?.removeEventListener("abort", abort);
    }
  }

  async end(how: "gently" | "quickly"): Promise<void> {
    this.#isLost = true;
    for (const { answer } of this.#waiting.values())
      answer.resolve({ outcome: "lost", message: lostMessage });
    await this.#program.end(how);
  }

  kill(): void {
    this.#program.kill();
  }

  /** Also finds out whether the host still listens at all. */
  async #abort(run: number): Promise<void> {
    if (this.#isLost) return;
    this.#program.send({ ask: "abort", run, id: ++this.#lastId });
    const id = ++this.#lastId;
    const pong = newWaiting(undefined);
    this.#waiting.set(id, pong);
    this.#program.send({ ask: "ping", id });
    const answered = await orAfter(pong.answer.promise, pingLimitMs, undefined);
    this.#waiting.delete(id);
    if (answered === undefined) return this.#lose("it was stuck in a loop and was ended");
    this.#waiting.get(run)?.answer.resolve({ outcome: "late", message: "it was cancelled" });
  }

  #read(message: unknown): void {
    const read = parseHostMessage(message);
    if (read === undefined) return;
    if ("log" in read) return this.#print(read.log);
    if ("began" in read) return this.#begin(read.began);
    this.#waiting.get(read.id)?.answer.resolve(toAsked(read));
  }

  #begin(id: number): void {
    const waiting = this.#waiting.get(id);
    if (waiting?.module === undefined) return;
    this.#began.push(id);
    waiting.began.resolve(undefined);
  }

  #lose(why: string): void {
    if (this.#isLost) return;
    const suspect = this.#began.map((id) => this.#waiting.get(id)?.module).findLast((module) => module);
    // Told first: who waits for an answer asks next whose fault it was.
    this.#options.onLost(why, suspect);
    void this.end("quickly").catch((error: unknown) =>
      this.#options.log.error("the process of plugins did not end", errorFields(error)),
    );
  }

  #print(text: string): void {
    if (this.#printed > printedLimit) return;
    this.#printed += text.length;
    const more = this.#printed > printedLimit ? " (no more of it is logged)" : "";
    this.#options.log.info(`plugins: ${text.trimEnd().slice(0, printedLimit)}${more}`);
  }
}

function newWaiting(module: string | undefined): Waiting {
  return { answer: deferred<Asked>(), began: deferred<undefined>(), module };
}

function moduleOf(request: Ask): string | undefined {
  if (!("module" in request)) return undefined;
  return typeof request.module === "string" ? request.module : request.module.name;
}

function toAsked({ value, error }: HostAnswer): Asked {
  if (error !== undefined) return { outcome: error.kind, message: excerpt(error.message, errorLimit) };
  try {
    return { outcome: "value", value: JSON.parse(value ?? "null") };
  } catch {
    // A module can write into the channel by itself.
    return { outcome: "bug", message: "the answer is no JSON" };
  }
}
