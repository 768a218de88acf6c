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
  /** Bytes of a file on disk. */
  readonly read: (path: string) => Promise<Uint8Array>;
  readonly log: Log;
  /** Tells the person. */
  readonly warn: (text: string) => void;
  /** For tests; {@link waits} unless given. */
  readonly waits?: { firstMs: number; laterMs: number; quietMs?: LanguageServerDeps["quietMs"] };
}

/** Where edits were made, and what is configured there. */
export interface ServerFolders {
  readonly servers: Readonly<Record<string, LanguageServerConfig>>;
  /** Absolute real path of what the servers are for: the worktree. */
  readonly root: string;
  /** Paths are told relative to it. */
  readonly cwd: string;
}

/** How long an edit waits for errors: the first one also for the server to read the project. */
const waits = { firstMs: 15_000, laterMs: 5_000 };
/** A server that was late so often in a row is ended. */
const latenessLimit = 3;
/** Longer texts are not sent to servers. */
const textLimitBytes = 1024 * 1024;

/**
 * The language servers of this process, one for each folder and configuration, started with the first edit that is
 * theirs. They end with the process. One that fails is told of once and not started again.
 */
export class LanguageServers {
  readonly #deps: LanguageServersDeps;
  readonly #entries = new Map<string, Entry>();

  constructor(deps: LanguageServersDeps) {
    this.#deps = deps;
  }

  /** The errors that the changes brought, in words for the model; empty where there are none. Never rejects. */
  async diagnose(place: ServerFolders, changes: readonly FileChange[], signal: AbortSignal): Promise<string> {
    const edited = await Promise.all(changes.flatMap((change) => this.#toEdited(change)));
    const files = edited.filter((file) => file !== undefined);
    const servers = Object.entries(place.servers).map(([name, config]) => ({ name, config, place }));
    const texts = await Promise.all(servers.map((server) => this.#ask(server, files, signal)));
    return texts.filter((text) => text !== "").join("\n\n");
  }

  async #ask(
    { name, config, place }: Configured,
    edited: readonly EditedFile[],
    signal: AbortSignal,
  ): Promise<string> {
    const files = edited.filter(({ path }) => servesFile(name, config.extensions, path));
    if (files.length === 0) return "";
    const entry = this.#entryOf({ name, config, place });
    if (entry === undefined || entry.isGivenUp) return "";
    const { firstMs, laterMs } = this.#deps.waits ?? waits;
    const check = entry.check(files);
    check.catch((error: unknown) => this.#giveUp(entry, reasonOf(name, error)));
    const waited = orAfter(check, entry.hasAnswered ? laterMs : firstMs, "late" as const);
    try {
      const found = await orWhenAborted(waited, signal, "cancelled" as const);
      if (found === "cancelled") return "";
      if (found === "late") return this.#late(name, entry);
      entry.accept();
      return found.length === 0 ? "" : describeProblems(name, found, place.cwd);
    } catch (error) {
      this.#deps.log.info("no errors from a language server", { name, ...errorFields(error) });
      return "";
    }
  }

  #late(name: string, entry: Entry): string {
    entry.lateness++;
    if (entry.lateness < latenessLimit)
      return `${name} has not looked at this yet; errors that it finds come with a later edit.`;
    this.#giveUp(entry, `The language server ${name} is not used any more: it does not answer in time.`);
    return "";
  }

  #giveUp(entry: Entry, why: string): void {
    if (entry.isGivenUp) return;
    entry.giveUp();
    this.#deps.warn(`${why} Edits go on without its errors.`);
  }

  #entryOf({ name, config, place }: Configured): Entry | undefined {
    const { command } = config;
    if (command === undefined || config.disabled === true) return undefined;
    const { root } = place;
    const key = JSON.stringify([root, name, config]);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const { processes, log } = this.#deps;
    const quietMs = this.#deps.waits?.quietMs;
    const read = (path: string) => this.#readText(path);
    const entry = new Entry(() =>
      LanguageServer.start({ name, config: { ...config, command }, root, processes, read, log, quietMs }),
    );
    this.#entries.set(key, entry);
    return entry;
  }

  /** Both ends of a move are files of their own. */
  #toEdited({ path, fromPath, before, after }: FileChange): Promise<EditedFile | undefined>[] {
    if (fromPath === undefined) return [this.#edited(path, before, after)];
    return [this.#edited(fromPath, before, null), this.#edited(path, null, after)];
  }

  async #edited(
    path: string,
    before: string | null | undefined,
    after: string | null | undefined,
  ): Promise<EditedFile | undefined> {
    const texts = await Promise.all([before, after].map((hash) => this.#text(hash)));
    const [old, fresh] = texts;
    return old === undefined || fresh === undefined ? undefined : { path, before: old, after: fresh };
  }

  /** Undefined for what was not kept or is too long. */
  async #text(hash: string | null | undefined): Promise<string | null | undefined> {
    if (hash === null || hash === undefined) return hash;
    return toText(await this.#deps.snapshots.load(hash));
  }

  async #readText(path: string): Promise<string | undefined> {
    try {
      return toText(await this.#deps.read(path));
    } catch {
      // It is gone, or closed to us: then it is closed there too.
      return undefined;
    }
  }
}

interface Configured {
  readonly name: string;
  readonly config: LanguageServerConfig;
  readonly place: ServerFolders;
}

/** One server from its first use on; what is asked of it is asked one after the other. */
class Entry {
  readonly #start: () => Promise<LanguageServer>;
  readonly #queue = new Serial();
  #starting: Promise<LanguageServer> | undefined;
  #server: LanguageServer | undefined;
  hasAnswered = false;
  isGivenUp = false;
  lateness = 0;

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
    this.lateness = 0;
    this.#server?.accept();
  }

  /** What is left of it is ended with the process, at the latest. */
  giveUp(): void {
    this.isGivenUp = true;
    // One that never started was told of by whoever asked it.
    this.#starting?.then((server) => server.end()).catch(() => {});
  }
}

/** The connection's own errors name no server. */
function reasonOf(name: string, error: unknown): string {
  if (error instanceof UserError) return error.message;
  return `The language server ${name} is not used any more: ${messageOf(error)}.`;
}

function toText(bytes: Uint8Array | undefined): string | undefined {
  if (bytes === undefined || bytes.byteLength > textLimitBytes) return undefined;
  return new TextDecoder().decode(bytes);
}
