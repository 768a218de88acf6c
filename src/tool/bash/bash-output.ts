import { randomUUID } from "node:crypto";
import { open, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
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
import { TerminalText } from "./terminal-text.ts";

const LONG_LINE = 2_000;
/** An endless output must not fill the disk. */
const STORED_BYTES = 64 * 1024 * 1024;
/** So much output goes to the disk at once. More would be faster for the disk, but slower in all: what waits is no longer in the processor's cache. */
const WRITE_BYTES = 256 * 1024;
/** The editor gets the beginning at once and of the rest as much as a person can follow. */
const LIVE_START_CHARACTERS = 64 * 1024;
const LIVE_CHARACTERS_PER_SECOND = 4 * 1024;
const LIVE_MIN_CHARACTERS = 2 * 1024;
/** Of what was too fast, the end is shown when the command has ended. */
const LIVE_END_CHARACTERS = 16 * 1024;

/** What is left of a command's output when it has ended. */
export interface OutputResult {
  /** Plain text for the model, empty when nothing was printed; of a long output its end, which tells how it went. */
  text: string;
  truncated: boolean;
  /** What is missing of it, and where that is. */
  note?: string;
  /** The file that holds the whole output, when the text does not. */
  path?: string;
}

/** Takes a command's output as it comes: shows it live, remembers its end, keeps the whole in a file if it is long. */
export class BashOutput {
  readonly #terminal = new TerminalText();
  readonly #live: LiveOutput;
  readonly #stored: StoredOutput;
  #characters = 0;

  constructor({ limits, show }: { limits: OutputLimits; show: (delta: string) => Promise<void> }) {
    this.#live = new LiveOutput(show);
    this.#stored = new StoredOutput(limits);
  }

  async push(piece: TextOrBytes): Promise<void> {
    this.#characters += piece.length;
    const settled = this.#terminal.push(piece);
    for (const one of settled) await this.#stored.push(one);
    if (!this.#terminal.isBinary) await this.#live.push(settled, this.#terminal.openLine);
  }

  async end(): Promise<OutputResult> {
    await this.#stored.push(this.#terminal.end());
    const shown = await this.#stored.end();
    if (!this.#terminal.isBinary) {
      await this.#live.end(shown.text);
      return shown;
    }
    const { truncated, path } = shown;
    const text = describeBinary(this.#characters, path);
    await this.#live.addParagraph(text);
    return { text, truncated, path };
  }

  /** Says live what the output itself does not say, behind it. */
  async note(notes: readonly string[]): Promise<void> {
    for (const note of notes) await this.#live.addParagraph(note);
  }

  /** Lets go of the file; to be called however the command ended. */
  close(): Promise<void> {
    this.#live.close();
    return this.#stored.close();
  }
}

/** What is no text became one character a byte, nearly. */
function describeBinary(bytes: number, path: string | undefined): string {
  const kept = path === undefined ? "" : ` What could be read of it as text is in ${path}.`;
  return `[The output is binary, about ${formatBytes(bytes)}, and is not shown. Write it to a file, or look at it with a program such as od or strings.${kept}]`;
}

/** Sends additions only, and skips what is too fast to be read; the newest of it follows when nothing else does. */
class LiveOutput {
  readonly #show: (delta: string) => Promise<void>;
  readonly #start = performance.now();
  /** What of the line that is being written has been sent. */
  #shownLine = "";
  #sent = 0;
  #skipped = 0;
  /** The end of what was skipped, beside the line that is being written. */
  #newest: TextOrBytes[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(show: (delta: string) => Promise<void>) {
    this.#show = show;
  }

  async push(settled: readonly TextOrBytes[], openLine: string): Promise<void> {
    const room = this.#remainingCharacters();
    const length = totalLength(settled) + openLine.length;
    if (room < LIVE_MIN_CHARACTERS) this.#skipped += Math.max(0, length - this.#shownLine.length);
    else {
      this.#newest = [];
      await this.#send(this.#getAddition(settled.map(textOf).join(""), openLine), room);
    }
    this.#shownLine = openLine;
    if (this.#skipped > 0) this.#scheduleCatchUp(settled);
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  /** What the editor may get by now, in characters. */
  #remainingCharacters(): number {
    const seconds = (performance.now() - this.#start) / 1_000;
    return Math.floor(LIVE_START_CHARACTERS + seconds * LIVE_CHARACTERS_PER_SECOND - this.#sent);
  }

  #getAddition(settled: string, openLine: string): string {
    const shown = this.#shownLine;
    const text = settled + openLine;
    return text.startsWith(shown) ? text.slice(shown.length) : `\n${text}`;
  }

  async #send(delta: string, room: number): Promise<void> {
    if (delta === "") return;
    if (this.#skipped > 0) await this.#resume(delta, room);
    else await this.#emit(delta.slice(0, room), delta.length - room);
  }

  /** Shows the end of the whole text where it was too fast. */
  async end(text: string): Promise<void> {
    this.close();
    if (this.#skipped === 0) return;
    const newest = text.slice(-Math.min(this.#skipped, LIVE_END_CHARACTERS));
    await this.#showAfterGap(this.#skipped - newest.length, newest);
    this.#shownLine = newest.endsWith("\n") ? "" : newest;
  }

  /** A paragraph of our own. */
  async addParagraph(text: string): Promise<void> {
    const start = this.#shownLine === "" ? "\n" : "\n\n";
    await this.#emit(this.#sent === 0 ? text : start + text, 0);
    this.#shownLine = text;
  }

  /** After a gap the newest is what counts. */
  async #resume(delta: string, room: number): Promise<void> {
    const newest = delta.slice(-room);
    await this.#showAfterGap(this.#skipped + delta.length - newest.length, newest);
  }

  /** Shows the newest behind so much that was left out. */
  async #showAfterGap(skipped: number, newest: string): Promise<void> {
    this.#skipped = 0;
    const gap = `\n[… ${formatBytes(skipped)} too fast to show …]\n`;
    await this.#emit(skipped > 0 ? gap + newest : newest, 0);
  }

  async #emit(text: string, skipped: number): Promise<void> {
    this.#sent += text.length;
    this.#skipped += Math.max(0, skipped);
    await this.#show(text);
  }

  #scheduleCatchUp(settled: readonly TextOrBytes[]): void {
    const newest = [...this.#newest, ...settled];
    while (totalLength(newest) - (newest[0]?.length ?? Infinity) >= LIVE_MIN_CHARACTERS) newest.shift();
    this.#newest = newest;
    const lacking = Math.max(0, LIVE_MIN_CHARACTERS - this.#remainingCharacters());
    const waitMs = (lacking / LIVE_CHARACTERS_PER_SECOND) * 1_000;
    this.#timer ??= setTimeout(() => this.#catchUp(), waitMs);
  }

  #catchUp(): void {
    this.#timer = undefined;
    if (this.#skipped === 0) return;
    const text = this.#newest.map(textOf).join("") + this.#shownLine;
    this.#newest = [];
    const newest = text.slice(-Math.min(this.#skipped, LIVE_MIN_CHARACTERS));
    // Where it cannot be shown, the next piece or the result meets the same.
    this.#showAfterGap(this.#skipped - newest.length, newest).catch(() => {});
  }
}

function totalLength(pieces: readonly TextOrBytes[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** Holds a short output whole; of a long one the end, and the whole in a file. */
class StoredOutput {
  readonly #folder: string;
  readonly #mostLines: number;
  readonly #mostBytes: number;
  readonly #hint: string;
  #pieces: TextOrBytes[] = [];
  #heldCharacters = 0;
  /** That have ended, counted as long as it is short. */
  #endedLines = 0;
  #isLineOpen = false;
  #bytes = 0;
  #file: { path: string; handle: FileHandle; bytes: number } | undefined;
  #unwritten: TextOrBytes[] = [];
  #unwrittenBytes = 0;
  /** One write goes on while more output comes. */
  #writing: Promise<void> = Promise.resolve();
  /** Why the file does not hold the whole output. */
  #problem: string | undefined;

  constructor(limits: OutputLimits) {
    this.#folder = limits.folder;
    this.#mostLines = limits.maxLines ?? outputLimitLines;
    this.#mostBytes = limits.maxBytes ?? outputLimitBytes;
    this.#hint = limits.hint ?? defaultHint;
  }

  async push(piece: TextOrBytes): Promise<void> {
    if (piece.length === 0) return;
    const wasShort = this.#isShort();
    this.#bytes += byteLengthOf(piece);
    this.#heldCharacters += piece.length;
    if (wasShort) this.#countLines(textOf(piece));
    this.#pieces.push(piece);
    if (this.#isShort()) return;
    await this.#store(wasShort ? this.#pieces : [piece]);
    this.#dropBeginning();
  }

  async end(): Promise<OutputResult> {
    await this.#flush();
    await this.#writing;
    const whole = this.#pieces.map(textOf).join("");
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

  /** Whole pieces only, because joining them for each piece that comes would copy all of a fast output. */
  #dropBeginning(): void {
    for (let [first] = this.#pieces; first !== undefined; [first] = this.#pieces) {
      if (this.#heldCharacters - first.length <= this.#mostBytes) return;
      this.#heldCharacters -= first.length;
      this.#pieces.shift();
    }
  }

  async #store(pieces: readonly TextOrBytes[]): Promise<void> {
    if (this.#problem !== undefined) return;
    for (const piece of pieces) {
      this.#unwritten.push(piece);
      this.#unwrittenBytes += byteLengthOf(piece);
    }
    if (this.#unwrittenBytes >= WRITE_BYTES) await this.#flush();
  }

  /** Waits for the write before, not for this one. */
  async #flush(): Promise<void> {
    if (this.#unwrittenBytes === 0) return;
    const [pieces, bytes] = [this.#unwritten, this.#unwrittenBytes];
    this.#unwritten = [];
    this.#unwrittenBytes = 0;
    await this.#writing;
    if (this.#problem === undefined) this.#writing = this.#write(pieces.map(bytesOf), bytes);
  }

  async #write(parts: Buffer[], bytes: number): Promise<void> {
    try {
      this.#file ??= await createFile(this.#folder);
      const room = STORED_BYTES - this.#file.bytes;
      const kept = bytes > room ? [Buffer.concat(parts).subarray(0, room)] : parts;
      const { bytesWritten } = await this.#file.handle.writev(kept);
      this.#file.bytes += bytesWritten;
      if (bytesWritten < Math.min(bytes, room)) await this.#discardFile("the disk took only a part of it");
      else if (bytes > room) this.#problem = `More than ${formatBytes(STORED_BYTES)} are not kept.`;
    } catch (error) {
      await this.#discardFile(messageOf(error));
    }
  }

  /** On a full disk the beginning of an output would take the room that the session needs. */
  async #discardFile(reason: string): Promise<void> {
    this.#problem = `The whole could not be kept: ${reason}.`;
    const file = this.#file;
    this.#file = undefined;
    if (file === undefined) return;
    await file.handle.close().catch(() => {});
    await rm(file.path, { force: true }).catch(() => {});
  }
}

async function createFile(folder: string) {
  await makeFolder(folder, 0o700);
  const path = join(folder, `bash-${randomUUID()}.txt`);
  // Outputs may hold what only this person may read.
  return { path, handle: await open(path, "wx", 0o600), bytes: 0 };
}

/** The last lines that fit; of a line that does not, its end. */
function takeEnd(text: string, mostLines: number, mostBytes: number): string {
  const end = cutText(text, mostLines, mostBytes, "tail");
  const isInLine = end.length < text.length && text[text.length - end.length - 1] !== "\n";
  return isInLine ? dropPartialLine(end) : end;
}

/** Half a line at the beginning would mislead, unless it is most of what there is. */
function dropPartialLine(text: string): string {
  const newline = text.indexOf("\n");
  return newline === -1 || newline === text.length - 1 || newline > LONG_LINE
    ? text
    : text.slice(newline + 1);
}
