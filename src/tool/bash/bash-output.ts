import { open, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { randomUuid } from "../../base/text/hash.ts";
import { messageOf } from "../../base/errors.ts";
import { makeFolder } from "../../base/files/make-folder.ts";
import { byteLengthOf, bytesOf, type TextOrBytes, textOf } from "../../base/secrets/text-or-bytes.ts";
import {
  countLines,
  cutText,
  defaultHint,
  formatBytes,
  outputLimitBytes,
  outputLimitLines,
  type OutputLimits,
} from "../output-limit.ts";
import { JobLog } from "../job/job-log.ts";
import { TerminalText } from "./terminal-text.ts";

const LONG_LINE = 2_000;
/** Bytes stored per output, so that an endless one cannot fill the disk. */
const STORED_BYTES = 64 * 1024 * 1024;
/** Bytes per write. Larger writes are slower overall, because waiting output drops out of the processor's cache. */
const WRITE_BYTES = 256 * 1024;
/** The editor gets the beginning at once, and the rest at a rate that can be read. */
const LIVE_START_CHARACTERS = 64 * 1024;
const LIVE_CHARACTERS_PER_SECOND = 4 * 1024;
const LIVE_MIN_CHARACTERS = 2 * 1024;
/** Characters of skipped output that are shown when the command has ended. */
const LIVE_END_CHARACTERS = 16 * 1024;

/** A command's output after it has ended. */
export interface OutputResult {
  /** Plain text for the model: empty when nothing was printed, only the end if the output is long. */
  text: string;
  truncated: boolean;
  /** Describes the omitted part and names the file that has it. */
  note?: string;
  /** The file with the whole output, if the text was cut. */
  path?: string;
}

/** Collects a command's output: shows it live, remembers its end, and stores long output in a file. */
export class BashOutput {
  readonly #terminal = new TerminalText();
  readonly #live: LiveOutput;
  readonly #stored: StoredOutput;
  readonly #waitUntilReady: () => Promise<void>;
  #log: JobLog | undefined;
  #characters = 0;

  constructor(deps: {
    limits: OutputLimits;
    show(delta: string): void;
    /** Resolves when the client can receive more. */
    waitUntilReady(): Promise<void>;
  }) {
    this.#live = new LiveOutput((delta) => deps.show(delta));
    this.#waitUntilReady = () => deps.waitUntilReady();
    this.#stored = new StoredOutput(deps.limits);
  }

  async push(chunk: TextOrBytes): Promise<void> {
    this.#characters += chunk.length;
    const settled = this.#terminal.push(chunk);
    for (const one of settled) await this.#stored.push(one);
    if (this.#terminal.isBinary) return;
    this.#log?.add(settled.map(textOf).join(""), this.#terminal.openLine);
    this.#live.push(settled, this.#terminal.openLine);
    await this.#waitUntilReady();
  }

  /** Passes later output on to a new log. */
  follow(): JobLog {
    const log = new JobLog(this.#terminal.openLine);
    this.#log = log;
    return log;
  }

  /** Returns the output so far. */
  async soFar(): Promise<OutputResult> {
    const shown = await this.#stored.end();
    if (this.#terminal.isBinary) {
      const { truncated, path } = shown;
      return { text: describeBinary(this.#characters, path), truncated, path };
    }
    return { ...shown, text: shown.text + this.#terminal.openLine };
  }

  async end(): Promise<OutputResult> {
    const rest = this.#terminal.end();
    await this.#stored.push(rest);
    this.#log?.add(rest, "");
    const shown = await this.#stored.end();
    if (!this.#terminal.isBinary) {
      this.#live.end(shown.text);
      return shown;
    }
    const { truncated, path } = shown;
    const text = describeBinary(this.#characters, path);
    this.#live.addParagraph(text);
    return { text, truncated, path };
  }

  /** Shows notes live, after the output. */
  note(notes: readonly string[]): void {
    for (const note of notes) this.#live.addParagraph(note);
  }

  /** Closes the file. Must be called however the command ended. */
  close(): Promise<void> {
    this.#live.close();
    return this.#stored.close();
  }
}

/** Each byte that is not text was decoded to about one character, so characters approximate bytes. */
function describeBinary(bytes: number, path: string | undefined): string {
  const stored = path === undefined ? "" : ` The text found in it is in ${path}.`;
  return `[The output is binary, about ${formatBytes(bytes)}, and is not shown. Write it to a file, or look at it with a program such as od or strings.${stored}]`;
}

/** Sends only additions, and skips output that is too fast to read. The newest skipped part is sent in a pause. */
class LiveOutput {
  readonly #show: (delta: string) => void;
  readonly #start = performance.now();
  /** The sent part of the unfinished line. */
  #shownLine = "";
  #sent = 0;
  #skipped = 0;
  /** The end of the skipped output, without the unfinished line. */
  #newest: TextOrBytes[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(show: (delta: string) => void) {
    this.#show = show;
  }

  push(settled: readonly TextOrBytes[], openLine: string): void {
    const limit = this.#remainingCharacters();
    const length = totalLength(settled) + openLine.length;
    if (limit < LIVE_MIN_CHARACTERS) this.#skipped += Math.max(0, length - this.#shownLine.length);
    else {
      this.#newest = [];
      this.#send(this.#getAddition(settled.map(textOf).join(""), openLine), limit);
    }
    this.#shownLine = openLine;
    if (this.#skipped > 0) this.#scheduleCatchUp(settled);
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  /** Characters that may be sent now. */
  #remainingCharacters(): number {
    const seconds = (performance.now() - this.#start) / 1_000;
    return Math.floor(LIVE_START_CHARACTERS + seconds * LIVE_CHARACTERS_PER_SECOND - this.#sent);
  }

  #getAddition(settled: string, openLine: string): string {
    const shown = this.#shownLine;
    const text = settled + openLine;
    return text.startsWith(shown) ? text.slice(shown.length) : `\n${text}`;
  }

  #send(delta: string, limit: number): void {
    if (delta === "") return;
    if (this.#skipped > 0) this.#resume(delta, limit);
    else this.#emit(delta.slice(0, limit), delta.length - limit);
  }

  /** Shows the end of the text if output was skipped. */
  end(text: string): void {
    this.close();
    if (this.#skipped === 0) return;
    const newest = text.slice(-Math.min(this.#skipped, LIVE_END_CHARACTERS));
    this.#showAfterGap(this.#skipped - newest.length, newest);
    this.#shownLine = newest.endsWith("\n") ? "" : newest;
  }

  addParagraph(text: string): void {
    const start = this.#shownLine === "" ? "\n" : "\n\n";
    this.#emit(this.#sent === 0 ? text : start + text, 0);
    this.#shownLine = text;
  }

  /** Shows only the newest text after a gap. */
  #resume(delta: string, limit: number): void {
    const newest = delta.slice(-limit);
    this.#showAfterGap(this.#skipped + delta.length - newest.length, newest);
  }

  #showAfterGap(skipped: number, newest: string): void {
    this.#skipped = 0;
    const gap = `\n[… ${formatBytes(skipped)} too fast to show …]\n`;
    this.#emit(skipped > 0 ? gap + newest : newest, 0);
  }

  #emit(text: string, skipped: number): void {
    this.#sent += text.length;
    this.#skipped += Math.max(0, skipped);
    this.#show(text);
  }

  #scheduleCatchUp(settled: readonly TextOrBytes[]): void {
    const newest = [...this.#newest, ...settled];
    while (totalLength(newest) - (newest[0]?.length ?? Infinity) >= LIVE_MIN_CHARACTERS) newest.shift();
    this.#newest = newest;
    const missing = Math.max(0, LIVE_MIN_CHARACTERS - this.#remainingCharacters());
    const waitMs = (missing / LIVE_CHARACTERS_PER_SECOND) * 1_000;
    this.#timer ??= setTimeout(() => this.#catchUp(), waitMs);
  }

  #catchUp(): void {
    this.#timer = undefined;
    if (this.#skipped === 0) return;
    const text = this.#newest.map(textOf).join("") + this.#shownLine;
    this.#newest = [];
    const newest = text.slice(-Math.min(this.#skipped, LIVE_MIN_CHARACTERS));
    this.#showAfterGap(this.#skipped - newest.length, newest);
  }
}

function totalLength(chunks: readonly TextOrBytes[]): number {
  return chunks.reduce((sum, { length }) => sum + length, 0);
}

/** Holds short output whole; of long output it holds the end, and stores the whole in a file. */
class StoredOutput {
  readonly #folder: string;
  readonly #mostLines: number;
  readonly #mostBytes: number;
  readonly #hint: string;
  #chunks: TextOrBytes[] = [];
  #heldCharacters = 0;
  /** Finished lines, counted only while the output is short. */
  #endedLines = 0;
  #isLineOpen = false;
  #bytes = 0;
  #file: { path: string; handle: FileHandle; bytes: number } | undefined;
  #unwritten: TextOrBytes[] = [];
  #unwrittenBytes = 0;
  /** The write in progress; more output may arrive meanwhile. */
  #writing: Promise<void> = Promise.resolve();
  /** Why the file lacks part of the output. */
  #problem: string | undefined;

  constructor(limits: OutputLimits) {
    this.#folder = limits.folder;
    this.#mostLines = limits.maxLines ?? outputLimitLines;
    this.#mostBytes = limits.maxBytes ?? outputLimitBytes;
    this.#hint = limits.hint ?? defaultHint;
  }

  async push(chunk: TextOrBytes): Promise<void> {
    if (chunk.length === 0) return;
    const wasShort = this.#isShort();
    this.#bytes += byteLengthOf(chunk);
    this.#heldCharacters += chunk.length;
    if (wasShort) this.#countLines(textOf(chunk));
    this.#chunks.push(chunk);
    if (this.#isShort()) return;
    await this.#store(wasShort ? this.#chunks : [chunk]);
    this.#dropBeginning();
  }

  async end(): Promise<OutputResult> {
    await this.#flush();
    await this.#writing;
    const whole = this.#chunks.map(textOf).join("");
    if (this.#isShort()) return { text: whole, truncated: false };
    const text = takeEnd(whole, this.#mostLines, this.#mostBytes);
    return { text, truncated: true, note: this.#note(text), path: this.#file?.path };
  }

  async close(): Promise<void> {
    await this.#writing;
    await this.#file?.handle.close();
  }

  #note(text: string): string {
    const lines = countLines(text);
    const size = lines === 1 ? "line is" : `${lines} lines are`;
    const missing = formatBytes(this.#bytes - Buffer.byteLength(text));
    return `[Only the last ${size} shown; ${missing} before are missing here. ${this.#describeRest()}]`;
  }

  #describeRest(): string {
    const path = this.#file?.path;
    if (this.#problem === undefined) return `The whole output is in ${path}. ${this.#hint}`;
    return path === undefined ? this.#problem : `Its beginning is in ${path}. ${this.#problem}`;
  }

  #isShort(): boolean {
    const lines = this.#endedLines + (this.#isLineOpen ? 1 : 0);
    return this.#bytes <= this.#mostBytes && lines <= this.#mostLines;
  }

  #countLines(text: string): void {
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) this.#endedLines++;
    this.#isLineOpen = !text.endsWith("\n");
  }

  /** Drops whole chunks only: joining them for each new chunk would copy all of a fast output. */
  #dropBeginning(): void {
    for (let [first] = this.#chunks; first !== undefined; [first] = this.#chunks) {
      if (this.#heldCharacters - first.length <= this.#mostBytes) return;
      this.#heldCharacters -= first.length;
      this.#chunks.shift();
    }
  }

  async #store(chunks: readonly TextOrBytes[]): Promise<void> {
    if (this.#problem !== undefined) return;
    for (const chunk of chunks) {
      this.#unwritten.push(chunk);
      this.#unwrittenBytes += byteLengthOf(chunk);
    }
    if (this.#unwrittenBytes >= WRITE_BYTES) await this.#flush();
  }

  /** Waits for the previous write, not for this one. */
  async #flush(): Promise<void> {
    if (this.#unwrittenBytes === 0) return;
    const [chunks, bytes] = [this.#unwritten, this.#unwrittenBytes];
    this.#unwritten = [];
    this.#unwrittenBytes = 0;
    await this.#writing;
    if (this.#problem === undefined) this.#writing = this.#write(chunks.map(bytesOf), bytes);
  }

  async #write(parts: Buffer[], bytes: number): Promise<void> {
    try {
      this.#file ??= await createFile(this.#folder);
      const free = STORED_BYTES - this.#file.bytes;
      const stored = bytes > free ? [Buffer.concat(parts).subarray(0, free)] : parts;
      const { bytesWritten } = await this.#file.handle.writev(stored);
      this.#file.bytes += bytesWritten;
      if (bytesWritten < Math.min(bytes, free)) await this.#discardFile("the disk took only a part of it");
      else if (bytes > free)
        this.#problem = `Output after the first ${formatBytes(STORED_BYTES)} was not saved.`;
    } catch (error) {
      await this.#discardFile(messageOf(error));
    }
  }

  /** Deletes the file, because on a full disk it would take the space that the session needs. */
  async #discardFile(reason: string): Promise<void> {
    this.#problem = `The whole output could not be saved: ${reason}.`;
    const file = this.#file;
    this.#file = undefined;
    if (file === undefined) return;
    await file.handle.close().catch(() => {});
    await rm(file.path, { force: true }).catch(() => {});
  }
}

async function createFile(folder: string) {
  await makeFolder(folder, 0o700);
  const path = join(folder, `bash-${randomUuid()}.txt`);
  // Outputs may contain text that only this user may read.
  return { path, handle: await open(path, "wx", 0o600), bytes: 0 };
}

/** Returns the last lines that fit, or the end of a line that is too long. */
function takeEnd(text: string, mostLines: number, mostBytes: number): string {
  const end = cutText(text, mostLines, mostBytes, "tail");
  const isInLine = end.length < text.length && text[text.length - end.length - 1] !== "\n";
  return isInLine ? dropPartialLine(end) : end;
}

/** Removes a partial first line, which would mislead, unless it is most of the text. */
function dropPartialLine(text: string): string {
  const newline = text.indexOf("\n");
  return newline === -1 || newline === text.length - 1 || newline > LONG_LINE
    ? text
    : text.slice(newline + 1);
}
