import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  renameSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { MessageId, SessionId } from "../message/ids.ts";
import type { Log } from "../base/log.ts";
import { openRegularFileSync } from "../base/files/regular-file.ts";
import { retryInUse } from "../base/files/retry-in-use.ts";
import type { SessionInfo } from "../message/message.ts";
import { Background } from "./json/background.ts";
import { type Change, messageIdsOf, storedChange } from "./change.ts";
import { withStoreErrors } from "./json/disk-error.ts";
import { inFolder, temporaryPath } from "./json/json-file.ts";

/** The parsed content of a journal, oldest change first. */
export interface JournalContent {
  changes: Map<MessageId, Change[]>;
  /** The newest copy of the session's info. */
  session?: SessionInfo;
  /** The highest `seq` so far; undefined when there is no journal. */
  lastSeq: number | undefined;
  /** Number of unreadable lines. A torn last line is not counted: a killed process leaves one. */
  garbageLines: number;
  /** Whether the last line lacks its line feed. */
  isTorn: boolean;
}

const newFile = { flag: "wx", mode: 0o600 } as const;

/** Every line starts with this, because `type` is the first field. */
const lineStart = '{"type":"';

/** Parses the journal of a session. Lines of another session count as damaged. */
export function parseJournal(text: string, sessionId: SessionId): JournalContent {
  const content: JournalContent = {
    changes: new Map(),
    lastSeq: undefined,
    garbageLines: 0,
    isTorn: !/(^|\n)$/.test(text),
  };
  const lines = text.split("\n");
  for (const [index, line] of lines.entries()) {
    const change = parseLine(line, sessionId);
    if (change) addChange(content, change);
    else if (index < lines.length - 1 || !isTornLine(line) || isAllZeros(text)) content.garbageLines++;
  }
  return content;
}

/** True for a file that contains only zeros: its content was lost. */
function isAllZeros(text: string): boolean {
  return text.startsWith("\0") && /^\0+$/.test(text);
}

/** True when a kill, or a power loss that leaves zeros, could have produced this line. */
function isTornLine(line: string): boolean {
  const written = line.replace(/\0+$/, "");
  return written.startsWith(lineStart) || lineStart.startsWith(written);
}

function addChange(content: JournalContent, change: Change): void {
  content.lastSeq = Math.max(content.lastSeq ?? 0, change.seq);
  if (change.type === "session") content.session = change.info;
  for (const id of messageIdsOf(change)) {
    const changes = content.changes.get(id);
    if (changes) changes.push(change);
    else content.changes.set(id, [change]);
  }
}

function parseLine(line: string, sessionId: SessionId): Change | undefined {
  try {
    const parsed = storedChange.safeParse(JSON.parse(line));
    return parsed.success && isOf(sessionId, parsed.data) ? parsed.data : undefined;
  } catch {
    // Not JSON: the caller counts the line as garbage.
    return undefined;
  }
}

function isOf(sessionId: SessionId, change: Change): boolean {
  if (change.type === "message") return change.info.sessionId === sessionId;
  return change.type !== "session" || change.info.id === sessionId;
}

/**
 * Append-only file of changes, one JSON line each, written before the messages' own files.
 * Changes are written before they are shown to anyone, and synchronously: for a few bytes, the thread pool costs
 * more than the write.
 */
export class Journal {
  readonly #path: string;
  readonly #temporaryFolder: string;
  readonly #writing: Background;
  /** `seq` for the first line of a new file. */
  readonly #startSeq: number;
  #pending: string[] = [];
  #file: number | undefined;
  /** Bytes of complete lines in the file. */
  #sizeBytes = 0;
  #isTorn = false;

  constructor(options: {
    path: string;
    temporaryFolder: string;
    startSeq: number;
    log: Log;
    /** Resolves when the file may be written. */
    ready: () => Promise<void>;
  }) {
    this.#path = options.path;
    this.#temporaryFolder = options.temporaryFolder;
    this.#startSeq = options.startSeq;
    const work = async () => {
      await options.ready();
      await withStoreErrors(this.#path, () => this.#writePending());
    };
    this.#writing = new Background({ name: "writing a journal", work, log: options.log });
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  append(change: Change): void {
    // Serialized now, because the caller may change it later.
    this.#pending.push(toLine(change));
    this.#writing.start();
  }

  /** Resolves when all appended changes have been written. */
  flush(): Promise<void> {
    return this.#writing.finish();
  }

  /** Closes the file until the next change, so that an idle session holds few file descriptors. */
  rest(): Promise<void> {
    return this.#writing.between(async () => {
      if (this.#isTorn || this.#pending.length > 0) return;
      this.#closeFile();
    });
  }

  /** Replaces the file by one with only these changes. They must contain everything that is not in other files. */
  replace(needed: () => { seq: number; changes: Change[] }): Promise<void> {
    return this.#writing.between(() => withStoreErrors(this.#path, () => this.#replace(needed())));
  }

  close(): Promise<void> {
    return this.#writing.between(async () => this.#closeFile());
  }

  #closeFile(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  async #writePending(): Promise<void> {
    if (this.#pending.length === 0) return;
    const batch = this.#pending;
    this.#pending = [];
    try {
      this.#file ??= await this.#open();
      if (this.#isTorn) ftruncateSync(this.#file, this.#sizeBytes);
      this.#isTorn = true;
      const start = this.#sizeBytes === 0 ? toLine({ type: "start", seq: this.#startSeq }) : "";
      this.#write(this.#file, start + batch.join(""));
    } catch (thrown) {
      this.#pending = [...batch, ...this.#pending];
      throw thrown;
    }
  }

  #write(file: number, text: string): void {
    const bytes = Buffer.from(text);
    for (let done = 0; done < bytes.length;) {
      done += writeSync(file, bytes, done, bytes.length - done);
    }
    this.#sizeBytes += bytes.length;
    this.#isTorn = false;
  }

  async #open(): Promise<number> {
    const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0);
    const file = await inFolder(dirname(this.#path), async () =>
      openRegularFileSync(this.#path, flags, 0o600),
    );
    // After a failed write, only the complete lines count.
    if (!this.#isTorn) this.#sizeBytes = fstatSync(file).size;
    return file;
  }

  async #replace({ seq, changes }: { seq: number; changes: Change[] }): Promise<void> {
    const replaced = this.#pending;
    this.#pending = [];
    const temporary = temporaryPath(this.#path, this.#temporaryFolder);
    try {
      const text = [{ type: "start" as const, seq }, ...changes].map(toLine).join("");
      await inFolder(this.#temporaryFolder, async () => writeFileSync(temporary, text, newFile));
      // Windows does not replace an open file. The next change opens the new one.
      this.#closeFile();
      await inFolder(dirname(this.#path), () => retryInUse(() => renameSync(temporary, this.#path)));
      this.#sizeBytes = Buffer.byteLength(text);
      this.#isTorn = false;
    } catch (thrown) {
      this.#pending = [...replaced, ...this.#pending];
      await rm(temporary, { force: true });
      throw thrown;
    }
  }
}

function toLine(change: Change): string {
  return `${JSON.stringify(change)}\n`;
}
