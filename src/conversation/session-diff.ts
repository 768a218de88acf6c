import { z } from "zod";
import { messageIdSchema, type MessageId, type SessionId } from "../message/ids.ts";
import type { Message, SessionInfo } from "../message/message.ts";
import type { FileChange } from "../message/part.ts";
import type { JsonStore } from "../storage/json/json-store.ts";
import type { Snapshots } from "../workspace/files/snapshot.ts";
import { changesOf, fileSteps, type FileStep } from "./checkpoints.ts";

/** One file's change since the session began. `before` and `after` as in a `FileChange`. */
const entrySchema = z.object({
  path: z.string(),
  additions: z.number().int().nonnegative(),
  deletions: z.number().int().nonnegative(),
  before: z.string().nullish(),
  after: z.string().nullish(),
});
type Entry = z.infer<typeof entrySchema>;

/** A file that the session changed: absolute path, line counts. */
export interface ChangedFile {
  readonly file: string;
  readonly status: "added" | "deleted" | "modified";
  readonly additions: number;
  readonly deletions: number;
}

const storedSchema = z.object({
  files: z.array(entrySchema),
  additions: z.number(),
  deletions: z.number(),
  /** The newest message included in the counts. */
  through: messageIdSchema.optional(),
});

interface SessionDiffDeps {
  id: SessionId;
  files: JsonStore;
  snapshots: Snapshots;
}

/** All file changes of a session's visible messages, per file, stored in `session_diff/<sessionId>`. */
export class SessionDiff {
  readonly #deps: SessionDiffDeps;
  #entries: ReadonlyMap<string, Entry>;
  #through: MessageId | undefined;
  /** False when its file is missing or was damaged. */
  readonly isStored: boolean;
  /** Changes that are noted but not stored yet, oldest first. */
  #pending: FileStep[] = [];

  static async load(deps: SessionDiffDeps): Promise<SessionDiff> {
    const stored = await deps.files.read(["session_diff", deps.id], storedSchema);
    return new SessionDiff(deps, stored);
  }

  /** Creates the diff of a new session. */
  static begin(deps: SessionDiffDeps): SessionDiff {
    return new SessionDiff(deps, undefined);
  }

  private constructor(deps: SessionDiffDeps, stored: z.infer<typeof storedSchema> | undefined) {
    this.#deps = deps;
    this.#entries = new Map(stored?.files.map((entry) => [entry.path, entry]));
    this.#through = stored?.through;
    this.isStored = stored !== undefined;
  }

  /** The changed files, as of the last save. */
  get files(): readonly ChangedFile[] {
    return [...this.#entries.values()].map(({ path, before, after, additions, deletions }) => ({
      file: path,
      status: before === null ? "added" : after === null ? "deleted" : "modified",
      additions,
      deletions,
    }));
  }

  /** Adds the changes of messages that are not included yet, oldest first. */
  note(messages: readonly Message[]): void {
    const known = messages.findLastIndex(({ info }) => !this.#isNew(info.id));
    const fresh = messages.slice(known + 1);
    this.#pending.push(...fileSteps(changesOf(fresh)));
    this.#through = fresh.at(-1)?.info.id ?? this.#through;
  }

  /** Adds changes that a call made after its message was included. */
  noteLate(id: MessageId, changes: readonly FileChange[]): void {
    if (!this.#isNew(id)) this.#pending.push(...fileSteps(changes));
  }

  /** Notes the changes that a killed process may have left uncounted: at most its last turn. */
  async noteStored(
    newestFirst: AsyncIterable<Message>,
    isLast: (message: Message) => boolean,
  ): Promise<void> {
    const fresh: Message[] = [];
    for await (const message of newestFirst) {
      if (!this.#isNew(message.info.id)) break;
      fresh.push(message);
      if (isLast(message)) break;
    }
    this.note(fresh.reverse());
  }

  /** Counts and stores the noted changes. Returns undefined when there are none. */
  async save(): Promise<SessionInfo["summary"]> {
    const pending = [...this.#pending];
    if (pending.length === 0) return undefined;
    const summary = await this.#write(await this.#merge(this.#entries, pending));
    this.#pending.splice(0, pending.length);
    return summary;
  }

  /** Replaces the diff by the changes of these messages, given newest first. */
  async rebuild(newestFirst: AsyncIterable<Message>): Promise<SessionInfo["summary"]> {
    const steps: FileStep[][] = [];
    let newest: MessageId | undefined;
    for await (const message of newestFirst) {
      newest ??= message.info.id;
      steps.push(fileSteps(changesOf([message])));
    }
    this.#pending = [];
    this.#through = newest;
    return this.#write(await this.#merge(new Map(), steps.reverse().flat()));
  }

  #isNew(id: MessageId): boolean {
    return this.#through === undefined || id > this.#through;
  }

  async #merge(entries: ReadonlyMap<string, Entry>, steps: readonly FileStep[]) {
    const merged = new Map(entries);
    for (const [path, own] of Map.groupBy(steps, (step) => step.path)) {
      const entry = await this.#extend(merged.get(path), own);
      if (entry.before === entry.after && entry.before !== undefined) merged.delete(path);
      else merged.set(path, entry);
    }
    return merged;
  }

  async #extend(known: Entry | undefined, steps: readonly FileStep[]): Promise<Entry> {
    const [first] = steps;
    const last = steps.at(-1);
    if (first === undefined || last === undefined) throw new Error("no steps");
    const { path, after } = last;
    const before = known === undefined ? first.before : known.before;
    const counted = known === undefined && steps.length === 1 ? first.counts : undefined;
    const counts =
      counted ?? (await this.#count(before, after)) ?? sumOf([known, ...steps.map((step) => step.counts)]);
    return { path, additions: counts.additions, deletions: counts.deletions, before, after };
  }

  /** Returns undefined when a content was not stored or is not text. */
  async #count(before: string | null | undefined, after: string | null | undefined) {
    // Loaded on first use, like the tools that need them.
    const [{ compareTexts }, { decodeText }] = await Promise.all([
      import("../tool/diff.ts"),
      import("../tool/text-file.ts"),
    ]);
    const [oldBytes, newBytes] = [await this.#load(before), await this.#load(after)];
    const oldText = oldBytes && decodeText(oldBytes)?.text;
    const newText = newBytes && decodeText(newBytes)?.text;
    if (oldText === undefined || newText === undefined) return undefined;
    return compareTexts(oldText, newText ?? "");
  }

  async #load(hash: string | null | undefined): Promise<Buffer | null | undefined> {
    return hash === null || hash === undefined ? hash : this.#deps.snapshots.load(hash);
  }

  async #write(entries: ReadonlyMap<string, Entry>): Promise<NonNullable<SessionInfo["summary"]>> {
    const files = [...entries.values()].sort((one, other) => (one.path < other.path ? -1 : 1));
    const { additions, deletions } = sumOf(files);
    const { id, files: store } = this.#deps;
    await store.write(["session_diff", id], { files, additions, deletions, through: this.#through });
    this.#entries = entries;
    return { additions, deletions, files: files.length };
  }
}

interface Counts {
  readonly additions: number;
  readonly deletions: number;
}

function sumOf(counts: readonly (Counts | undefined)[]): Counts {
  return {
    additions: counts.reduce((sum, count) => sum + (count?.additions ?? 0), 0),
    deletions: counts.reduce((sum, count) => sum + (count?.deletions ?? 0), 0),
  };
}
