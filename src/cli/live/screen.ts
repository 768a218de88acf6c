import { removeEscapes } from "../../base/text/controls.ts";
import { widthOf } from "../terminal/output.ts";

/** Lines that are redrawn below the printed text. None is wider than the terminal. */
export interface Region {
  readonly lines: readonly string[];
  /** Columns between the cursor and the end of the last line. */
  readonly cursorFromEnd?: number;
}

/** A terminal or a pipe to write to. */
export interface ScreenStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

interface ScreenOptions {
  /** Stream for answers. */
  readonly stdout: ScreenStream;
  /** Stream for everything else, and for drawn regions. */
  readonly stderr: ScreenStream;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Terminals without a size. */
const defaultColumns = 80;
const defaultRows = 24;
/** Narrower terminals get no regions. */
const minColumns = 20;

/**
 * Prints text, and draws a region below it that is replaced instead of scrolled. Both streams may be the same terminal:
 * the region is removed before either is written to, and drawn again at the start of the next line.
 */
export class Screen {
  readonly #options: ScreenOptions;
  /** Column of the cursor in the printed text; undefined if unknown. */
  #column: number | undefined = 0;
  #region: Region | undefined;
  /** Widths of the drawn lines. */
  #drawn: readonly number[] = [];
  /** Whether a status is drawn at the end of an unfinished line. */
  #isInline = false;

  constructor(options: ScreenOptions) {
    this.#options = options;
  }

  /** Whether regions can be drawn. */
  get isLive(): boolean {
    const { stderr, env } = this.#options;
    return stderr.isTTY === true && env["TERM"] !== "dumb" && this.columns >= minColumns;
  }

  get columns(): number {
    return this.#options.stderr.columns || defaultColumns;
  }

  get rows(): number {
    return this.#options.stderr.rows || defaultRows;
  }

  /** Whether the printed text has not ended its line. */
  get isMidLine(): boolean {
    return this.#column !== 0;
  }

  /** Whether progress is printed on a terminal, where long lines are cut. */
  get isTerminal(): boolean {
    return this.#options.stderr.isTTY === true;
  }

  /** Whether answers are printed on a terminal. */
  get isAnswerTerminal(): boolean {
    return this.#options.stdout.isTTY === true;
  }

  get answerColumns(): number {
    return this.#options.stdout.columns || this.columns;
  }

  answer(text: string): void {
    this.#print(this.#options.stdout, text);
  }

  progress(text: string): void {
    this.#print(this.#options.stderr, text);
  }

  /** Replaces the region; nothing is drawn within an unfinished line. */
  draw(region: Region | undefined): void {
    if (!this.isLive) return;
    if (region !== undefined && this.#drawn.length > 0 && isSame(region, this.#region)) return;
    this.#erase();
    this.#region = region;
    this.#redraw();
  }

  /** Shows a status at the end of an unfinished line; nothing if it does not fit. */
  drawInline(status: string): void {
    this.#erase();
    const width = widthOf(status);
    if (!this.isLive || this.#column === undefined || this.#column + width >= this.columns) return;
    // The terminal may echo keys after the status, so the place before it is saved.
    this.#options.stderr.write(`\u001b7${status}`);
    this.#isInline = true;
  }

  /** Forgets what is drawn: another program has written to the terminal. */
  forget(): void {
    this.#drawn = [];
    this.#isInline = false;
    this.#column = 0;
    this.#redraw();
  }

  #print(stream: ScreenStream, text: string): void {
    if (text === "") return;
    this.#erase();
    stream.write(text);
    if (stream.isTTY !== true) return;
    this.#column = this.#advance(text);
    this.#redraw();
  }

  /** Returns the column after a text; undefined if it depends on the terminal. */
  #advance(text: string): number | undefined {
    const end = text.lastIndexOf("\n");
    const rest = removeEscapes(text.slice(end + 1));
    const before = end === -1 ? this.#column : 0;
    if (before === undefined || rest.includes("\t")) return undefined;
    const column = before + widthOf(rest);
    // At the margin, terminals differ in where the next character goes.
    return column > 0 && column % this.columns === 0 ? undefined : column % this.columns;
  }

  #erase(): void {
    const { stderr } = this.#options;
    if (this.#isInline) stderr.write("\u001b8\u001b[K");
    this.#isInline = false;
    if (this.#drawn.length === 0) return;
    // After a resize, the terminal has wrapped the lines again.
    const rows = this.#drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / this.columns)), 0);
    // Line by line: tmux moves a screen that is erased as a whole into its history.
    stderr.write(`\r\u001b[K${"\u001b[A\u001b[K".repeat(rows - 1)}`);
    this.#drawn = [];
  }

  #redraw(): void {
    const region = this.#region;
    if (region === undefined || region.lines.length === 0 || this.#column !== 0) return;
    const { stderr } = this.#options;
    stderr.write(region.lines.join("\n"));
    this.#drawn = region.lines.map((line) => widthOf(removeEscapes(line)));
    if (region.cursorFromEnd) stderr.write(`\u001b[${region.cursorFromEnd}D`);
  }
}

function isSame(one: Region, other: Region | undefined): boolean {
  return (
    other !== undefined &&
    one.cursorFromEnd === other.cursorFromEnd &&
    one.lines.length === other.lines.length &&
    one.lines.every((line, index) => line === other.lines[index])
  );
}
