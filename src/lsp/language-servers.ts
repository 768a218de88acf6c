import { errorFields } from "../base/error-fields.ts";
import { orAfter, orWhenAborted, Serial } from "../base/async.ts";
import { messageOf, UserError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { LanguageServerConfig } from "../config/schema.ts";
import type { FileChange } from "../message/part.ts";
import type { ConfineProgram } from "../sandbox/project-sandbox.ts";
import type { PipedProcesses } from "../workspace/process/piped-process.ts";
import type { Snapshots } from "../workspace/files/snapshot.ts";
import {
  type EditedFile,
  LanguageServer,
  type LanguageServerDeps,
  type ReadText,
} from "./language-server.ts";
import { servesFile } from "./servers/languages.ts";
import { describeProblems, type Problem } from "./problems.ts";

export interface LanguageServersDeps {
  readonly processes: PipedProcesses;
  readonly snapshots: Pick<Snapshots, "load">;
  /** Reads a file from disk. */
  readonly read: (path: string) => Promise<Uint8Array>;
  readonly log: Log;
  /** Shows a warning to the user. */
  readonly warn: (text: string) => void;
  /** For tests; default {@link waits}. */
  readonly waits?: { firstMs: number; laterMs: number } & Pick<
    LanguageServerDeps,
    "quietMs" | "requestLimits"
  >;
}

/** Folders and configuration of a session. */
export interface ServerFolders {
  readonly servers: Readonly<Record<string, LanguageServerConfig>>;
  /** Real path of the worktree. */
  readonly root: string;
  /** Paths are shown relative to this folder. */
  readonly cwd: string;
  /** Runs a server in the sandbox, if its entry says so. */
  readonly confine: ConfineProgram;
}

/** Time that an edit waits for errors. The first wait includes reading the project. */
const waits = { firstMs: 15_000, laterMs: 5_000 };
/** Consecutive timeouts after which a server is ended. */
const timeoutsLimit = 3;
/** Longer texts are not sent to servers. */
const textLimitBytes = 1024 * 1024;
/** How often a server is started, the first time included. */
const startLimit = 4;

/**
 * Language servers of this process, one per folder and configuration, started with the first matching edit or
 * question. They end with the process. A failed server is reported once; only a question starts it again.
 */
export class LanguageServers {
  readonly #deps: LanguageServersDeps;
  readonly #entries = new Map<string, ServerQueue>();

  constructor(deps: LanguageServersDeps) {
    this.#deps = deps;
  }

  /** Describes errors caused by the changes, for the model; empty if there are none. Never rejects. */
  async diagnose(
    folders: ServerFolders,
    changes: readonly FileChange[],
    signal: AbortSignal,
  ): Promise<string> {
    const edited = await Promise.all(changes.flatMap((change) => this.#toEdited(change)));
    const files = edited.filter((file) => file !== undefined);
    const servers = Object.entries(folders.servers).map(([name, config]) => ({ name, config, folders }));
    const texts = await Promise.all(servers.map((server) => this.#check(server, files, signal)));
    return texts.filter((text) => text !== "").join("\n\n");
  }

  /**
   * Runs a task with a server, which is started if needed, and again if it ends meanwhile. Rejects with a message for
   * the user, and with the signal's reason when it aborts.
   */
  async use<T>(
    configured: ConfiguredServer,
    task: (server: LanguageServer) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const entry = this.#getQueue(configured);
    if (entry === undefined) throw new UserError(`The language server ${configured.name} has no command.`);
    const done = entry.use(task, signal).then((value) => ({ value }));
    const result = await orWhenAborted(done, signal, undefined);
    signal.throwIfAborted();
    if (result === undefined) throw new Error("a task ended without a result");
    return result.value;
  }

  /** Reads a file from the disk. */
  readonly readText: ReadText = (path) => this.#readText(path);

  async #check(
    { name, config, folders }: ConfiguredServer,
    edited: readonly EditedFile[],
    signal: AbortSignal,
  ): Promise<string> {
    const files = edited.filter(({ path }) => servesFile(name, config.extensions, path));
    if (files.length === 0) return "";
    const entry = this.#getQueue({ name, config, folders });
    if (entry === undefined || entry.isGivenUp) return "";
    const { firstMs, laterMs } = this.#deps.waits ?? waits;
    const check = entry.check(files);
    check.catch((error: unknown) => this.#giveUp(entry, describeFailure(name, error)));
    const waited = orAfter(check, entry.hasAnswered ? laterMs : firstMs, "late" as const);
    try {
      const found = await orWhenAborted(waited, signal, "cancelled" as const);
      if (found === "cancelled") return "";
      if (found === "late") return this.#onTimeout(name, entry);
      entry.accept();
      return found.length === 0 ? "" : describeProblems(name, found, folders.cwd);
    } catch (error) {
      this.#deps.log.info("language server check failed", { name, ...errorFields(error) });
      return "";
    }
  }

  #onTimeout(name: string, entry: ServerQueue): string {
    if (!entry.isInUse) entry.timeouts++;
    if (entry.timeouts < timeoutsLimit)
      return `${name} has not checked this yet; its errors are shown with a later edit.`;
    this.#giveUp(entry, `The language server ${name} was disabled: it does not respond in time.`);
    return "";
  }

  #giveUp(entry: ServerQueue, why: string): void {
    if (entry.isGivenUp) return;
    entry.giveUp();
    this.#deps.warn(`${why} Edits continue without its errors.`);
  }

  #getQueue({ name, config, folders }: ConfiguredServer): ServerQueue | undefined {
    const { command } = config;
    if (command === undefined || config.disabled === true) return undefined;
    const { root, confine } = folders;
    const key = JSON.stringify([root, name, config]);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const { processes, log } = this.#deps;
    const { quietMs, requestLimits } = this.#deps.waits ?? {};
    const read = this.readText;
    const limits = { quietMs, requestLimits };
    const entry = new ServerQueue(name, () =>
      LanguageServer.start({
        name,
        config: { ...config, command },
        root,
        processes,
        confine,
        read,
        log,
        ...limits,
      }),
    );
    this.#entries.set(key, entry);
    return entry;
  }

  /** Treats the two paths of a move as separate files. */
  #toEdited({ path, fromPath, before, after }: FileChange): Promise<EditedFile | undefined>[] {
    if (fromPath === undefined) return [this.#collectEdits(path, before, after)];
    return [this.#collectEdits(fromPath, before, null), this.#collectEdits(path, null, after)];
  }

  async #collectEdits(
    path: string,
    before: string | null | undefined,
    after: string | null | undefined,
  ): Promise<EditedFile | undefined> {
    const texts = await Promise.all([before, after].map((hash) => this.#text(hash)));
    const [old, fresh] = texts;
    return old === undefined || fresh === undefined ? undefined : { path, before: old, after: fresh };
  }

  /** Undefined if the content is not stored or too long. */
  async #text(hash: string | null | undefined): Promise<string | null | undefined> {
    if (hash === null || hash === undefined) return hash;
    return toText(await this.#deps.snapshots.load(hash));
  }

  async #readText(path: string): Promise<string | undefined> {
    try {
      return toText(await this.#deps.read(path));
    } catch {
      // Undefined closes an unreadable or deleted file in the server.
      return undefined;
    }
  }
}

export interface ConfiguredServer {
  readonly name: string;
  readonly config: LanguageServerConfig;
  readonly folders: ServerFolders;
}

/** A server with its queue: requests run one at a time. */
class ServerQueue {
  readonly #name: string;
  readonly #start: () => Promise<LanguageServer>;
  readonly #queue = new Serial();
  #starting: Promise<LanguageServer> | undefined;
  #server: LanguageServer | undefined;
  #starts = 0;
  #uses = 0;
  hasAnswered = false;
  isGivenUp = false;
  timeouts = 0;

  constructor(name: string, start: () => Promise<LanguageServer>) {
    this.#name = name;
    this.#start = start;
  }

  /** Whether a question is being answered, which may take longer than a check. */
  get isInUse(): boolean {
    return this.#uses > 0;
  }

  check(files: readonly EditedFile[]): Promise<Problem[]> {
    return this.#queue.run(async () => {
      const found = await (await this.#open()).check(files);
      this.hasAnswered = true;
      return found;
    });
  }

  /** Runs a task when the earlier ones have ended; once more if the server ends during it. */
  async use<T>(task: (server: LanguageServer) => Promise<T>, signal: AbortSignal): Promise<T> {
    this.#uses++;
    try {
      return await this.#queue.run(() => this.#runTask(task, signal));
    } finally {
      this.#uses--;
    }
  }

  async #runTask<T>(task: (server: LanguageServer) => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const server = await this.#open();
    try {
      return await task(server);
    } catch (error) {
      if (server.isAlive || signal.aborted || this.#starts >= startLimit) throw error;
      return await task(await this.#open());
    } finally {
      this.hasAnswered = true;
    }
  }

  /** Returns the running server; starts it if it does not run. */
  async #open(): Promise<LanguageServer> {
    if (this.#server?.isAlive === true && !this.isGivenUp) return this.#server;
    if (this.#starting === undefined || this.#server !== undefined || this.isGivenUp) {
      if (this.#starts >= startLimit)
        throw new UserError(
          `The language server ${this.#name} was started ${startLimit} times and ended each time.`,
        );
      this.#starts++;
      this.#server = undefined;
      this.isGivenUp = false;
      this.timeouts = 0;
      this.#starting = this.#start();
    }
    try {
      this.#server = await this.#starting;
      return this.#server;
    } catch (error) {
      this.#starting = undefined;
      throw error;
    }
  }

  accept(): void {
    this.timeouts = 0;
    this.#server?.accept();
  }

  /** Stops using the server and ends its process. */
  giveUp(): void {
    this.isGivenUp = true;
    // A failed start is reported by its caller.
    this.#starting?.then((server) => server.end()).catch(() => {});
  }
}

/** Returns the warning for the user. A UserError already names the server. */
function describeFailure(name: string, error: unknown): string {
  if (error instanceof UserError) return error.message;
  return `The language server ${name} was disabled: ${messageOf(error)}.`;
}

function toText(bytes: Uint8Array | undefined): string | undefined {
  if (bytes === undefined || bytes.byteLength > textLimitBytes) return undefined;
  return new TextDecoder().decode(bytes);
}
