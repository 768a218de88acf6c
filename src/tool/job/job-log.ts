import { deferred, type Deferred } from "../../base/async.ts";
import { takeHead } from "../output-limit.ts";

/** Characters of unread text; earlier ones are in the file with the whole output. */
const unreadLimit = 64 * 1024;
/** Characters of read text in which a pattern is searched for a hint. */
const readLimit = 8 * 1024;
/** Characters of the last line. */
const lastLineLimit = 200;

export interface UnreadText {
  readonly text: string;
  /** Characters before the text that are no longer in memory. */
  readonly skipped: number;
}

/** The text of a job, for a reader that asks for what is new. */
export class JobLog {
  #unread = "";
  #skipped = 0;
  #read = "";
  /** The unfinished line, and the part of it that was read. */
  #openLine = "";
  #readOfOpenLine: string;
  #lastLine = "";
  #changed: Deferred<void> = deferred();
  #isEnded = false;

  /** `openLine` is an unfinished line that was read before. */
  constructor(openLine = "") {
    this.#readOfOpenLine = openLine;
    this.#openLine = openLine;
  }

  /** Notes text that the reader got in another way. */
  noteRead(text: string): void {
    this.#read = text.slice(-readLimit);
    this.#noteLastLine(text, "");
  }

  /** Adds finished lines, and replaces the unfinished one. */
  add(lines: string, openLine: string): void {
    if (lines !== "") {
      this.#append(this.#continue(lines));
      this.#readOfOpenLine = "";
    }
    this.#openLine = openLine;
    this.#noteLastLine(lines, openLine);
    this.#ring();
  }

  /** Called when nothing more can be added. */
  end(): void {
    this.#isEnded = true;
    this.#ring();
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** The unread text, which stays unread. */
  get unread(): string {
    return this.#unread + this.#continue(this.#openLine);
  }

  /** The end of the text that was read. */
  get lastRead(): string {
    return this.#read;
  }

  /** The last line with text, for lists. */
  get lastLine(): string {
    return this.#lastLine;
  }

  /** Returns the unread text and marks it as read. */
  read(): UnreadText {
    const text = this.unread;
    const skipped = this.#skipped;
    this.#read = (this.#read + text).slice(-readLimit);
    this.#unread = "";
    this.#skipped = 0;
    this.#readOfOpenLine = this.#openLine;
    return { text, skipped };
  }

  /** Resolves at the next addition or at the end. */
  get changed(): Promise<void> {
    return this.#isEnded ? Promise.resolve() : this.#changed.promise;
  }

  /** Returns the part of a text that follows what was read of the unfinished line. */
  #continue(text: string): string {
    const read = this.#readOfOpenLine;
    if (text.startsWith(read)) return text.slice(read.length);
    // The line was overwritten, as a progress bar does.
    return text === "" ? "" : `\n${text}`;
  }

  #append(text: string): void {
    this.#unread += text;
    const excess = this.#unread.length - unreadLimit;
    // Cut rarely: each cut copies the text.
    if (excess < unreadLimit) return;
    this.#skipped += excess;
    this.#unread = this.#unread.slice(excess);
  }

  #noteLastLine(lines: string, openLine: string): void {
    const newest = openLine.trim() === "" ? (lines.trimEnd().split("\n").at(-1) ?? "") : openLine;
    if (newest.trim() !== "") this.#lastLine = takeHead(newest.trim(), lastLineLimit);
  }

  #ring(): void {
    const changed = this.#changed;
    this.#changed = deferred();
    changed.resolve();
  }
}
