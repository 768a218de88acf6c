import { errorFields } from "../base/error-fields.ts";
import { orAfter, orWhenAborted, Serial } from "../base/async.ts";
import { messageOf, UserError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { LanguageServerConfig } from "../config/schema.ts";
import type { FileChange } from "../message/part.ts";
import type { PipedProcesses } from "../workspace/process/piped-process.ts";
import type { Snapshots } from "../workspace/files/snapshot.ts";
import { type EditedFile, LanguageServer, type LanguageServerDeps } from "./language-server.ts";
import { servesFile } from "./languages.ts";
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
  readonly waits?: { firstMs: number; laterMs: number; quietMs?: LanguageServerDeps["quietMs"] };
}

/** Folders and configuration of a session. */
export interface ServerFolders {
  readonly servers: Readonly<Record<string, LanguageServerConfig>>;
  /** Real path of the worktree. */
  readonly root: string;
  /** Paths are shown relative to this folder. */
  readonly cwd: string;
}

/** Time that an edit waits for errors. The first wait includes reading the project. */
const waits = { firstMs: 15_000, laterMs: 5_000 };
/** Consecutive timeouts after which a server is ended. */
const timeoutsLimit = 3;
/** Longer texts are not sent to servers. */
const textLimitBytes = 1024 * 1024;

/**
 * Language servers of this process, one per folder and configuration, started with the first matching edit.
 * They end with the process. A failed server is reported once and not restarted.
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

  async #check(
    { name, config, folders }: Configured,
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
    entry.timeouts++;
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

  #getQueue({ name, config, folders }: Configured): ServerQueue | undefined {
    const { command } = config;
    if (command === undefined || config.disabled === true) return undefined;
    const { root } = folders;
    const key = JSON.stringify([root, name, config]);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const { processes, log } = this.#deps;
    const quietMs = this.#deps.waits?.quietMs;
    const read = (path: string) => this.#readText(path);
    const entry = new ServerQueue(() =>
      LanguageServer.start({ name, config: { ...config, command }, root, processes, read, log, quietMs }),
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

interface Configured {
  readonly name: string;
  readonly config: LanguageServerConfig;
  readonly folders: ServerFolders;
}

/** A server with its queue: requests run one at a time. */
class ServerQueue {
  readonly #start: () => Promise<LanguageServer>;
  readonly #queue = new Serial();
  #starting: Promise<LanguageServer> | undefined;
  #server: LanguageServer | undefined;
  hasAnswered = false;
  isGivenUp = false;
  timeouts = 0;

  constructor(start: () => Promise<LanguageServer>) {
    this.#start = start;
  }

  check(files: readonly EditedFile[]): Promise<Problem[]> {
    return this.#queue.run(async () => {
      this.#starting ??= this.#start();
      this.#server = await this.#starting;
      const found = await this.#server.check(files);
      this.hasAnswered = true;
      return found;
    });
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
