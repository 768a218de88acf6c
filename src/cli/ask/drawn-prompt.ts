import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { setTimeout as wait } from "node:timers/promises";
import type { Region, Screen } from "../live/screen.ts";
import { toScreenLine, wrapLine } from "../live/text-lines.ts";
import { takeColumns, widthOf } from "../terminal/output.ts";
import type { Style } from "../terminal/style.ts";
import { type Prompt, type PromptAnswer, readTyped } from "./prompt.ts";

/** Keys that were typed before the question appeared are dropped: they were meant for something else. */
const typeAheadMs = 50;
/** With more options a number is an answer only with Enter. */
const digitOptions = 9;
/** Rows of the terminal that options leave free. */
const reservedRows = 6;
const minShownOptions = 3;

interface DrawnPromptOptions {
  readonly screen: Screen;
  readonly style: Style;
  readonly input: NodeJS.ReadStream;
  readonly signal: AbortSignal;
}

/** Asks with a list that is drawn: arrow keys, numbers, and text. */
export async function askDrawn(prompt: Prompt, options: DrawnPromptOptions): Promise<PromptAnswer> {
  const drawn = new DrawnPrompt(prompt, options);
  try {
    return await drawn.ask();
  } finally {
    drawn.close();
  }
}

class DrawnPrompt {
  readonly #prompt: Prompt;
  readonly #options: DrawnPromptOptions;
  readonly #reader;
  readonly #answer = Promise.withResolvers<PromptAnswer>();
  readonly #marked = new Set<number>();
  #selected = 0;
  #problem: string | undefined;
  /** Whether keys are handled. */
  #isOpen = false;

  constructor(prompt: Prompt, options: DrawnPromptOptions) {
    this.#prompt = prompt;
    this.#options = options;
    const { input, signal } = options;
    // The reader edits the line; this class draws it.
    const output = new Writable({ write: (_chunk, _encoding, done) => done() });
    this.#reader = createInterface({ input, output, terminal: true, historySize: 0 });
    this.#reader.on("line", (line) => this.#isOpen && this.#submit(line));
    this.#reader.on("SIGINT", () => this.#answer.resolve({ kind: "interrupted" }));
    this.#reader.on("SIGCONT", () => this.#options.screen.forget());
    this.#reader.on("close", () => this.#answer.resolve({ kind: "closed" }));
    input.on("keypress", this.#onKey);
    signal.addEventListener("abort", this.#onAbort, { once: true });
    process.on("SIGWINCH", this.#draw);
    if (signal.aborted) this.#onAbort();
  }

  async ask(): Promise<PromptAnswer> {
    await Promise.race([wait(typeAheadMs), this.#answer.promise]);
    this.#clearLine();
    this.#isOpen = true;
    this.#draw();
    return this.#answer.promise;
  }

  close(): void {
    const { input, signal, screen } = this.#options;
    process.off("SIGWINCH", this.#draw);
    signal.removeEventListener("abort", this.#onAbort);
    input.off("keypress", this.#onKey);
    this.#reader.close();
    // At Ctrl-D the reader pauses within an event that starts reading again: only a second pause stops it.
    input.resume();
    input.pause();
    screen.draw(undefined);
  }

  readonly #onAbort = (): void => this.#answer.resolve({ kind: "withdrawn" });

  readonly #onKey = (_text: string | undefined, key: { name?: string }): void => {
    if (!this.#isOpen) return;
    this.#problem = undefined;
    const { options, isMultiple } = this.#prompt;
    const { line } = this.#reader;
    if (key.name === "escape") return this.#answer.resolve({ kind: "closed" });
    if (key.name === "up" || key.name === "down") {
      const step = key.name === "up" ? options.length - 1 : 1;
      this.#selected = options.length === 0 ? 0 : (this.#selected + step) % options.length;
    } else if (isMultiple === true && line === " ") {
      this.#clearLine();
      this.#toggle(this.#selected);
    } else if (/^[1-9]$/.test(line) && options.length <= digitOptions && Number(line) <= options.length) {
      // The digit may begin a pasted text: look again when all of it has arrived.
      setImmediate(() => this.#chooseNumber(line));
    }
    this.#draw();
  };

  #chooseNumber(digit: string): void {
    if (this.#reader.line !== digit) return;
    this.#clearLine();
    this.#selected = Number(digit) - 1;
    if (this.#prompt.isMultiple === true) this.#toggle(this.#selected);
    else this.#answer.resolve({ kind: "answered", chosen: [this.#selected], text: "" });
    this.#draw();
  }

  #toggle(index: number): void {
    if (!this.#marked.delete(index)) this.#marked.add(index);
  }

  #submit(line: string): void {
    const { options } = this.#prompt;
    const marked = [...this.#marked].sort((one, other) => one - other);
    if (line.trim() === "" && options.length > 0)
      return this.#answer.resolve({
        kind: "answered",
        chosen: marked.length > 0 ? marked : [this.#selected],
        text: "",
      });
    const read = readTyped(line, this.#prompt);
    if ("problem" in read) {
      this.#problem = read.problem;
      return this.#draw();
    }
    const chosen = [...new Set([...marked, ...read.chosen])];
    this.#answer.resolve({ kind: "answered", chosen, text: read.text });
  }

  #clearLine(): void {
    this.#reader.write(null, { ctrl: true, name: "e" });
    this.#reader.write(null, { ctrl: true, name: "u" });
  }

  readonly #draw = (): void => {
    if (this.#isOpen) this.#options.screen.draw(this.#region());
  };

  #region(): Region {
    const { screen, style } = this.#options;
    const width = screen.columns - 1;
    const problem = this.#problem === undefined ? [] : wrapLine(this.#problem, width - 2);
    const lines = [
      ...this.#optionLines(width),
      ...problem.map((line) => `  ${style.red(line)}`),
      ...(this.#reader.line === ""
        ? wrapLine(this.#help(), width - 2).map((line) => `  ${style.dim(line)}`)
        : []),
    ];
    const { text, fromEnd } = this.#typed(width - 4);
    return { lines: [...lines, `  ${style.cyan("›")} ${text}`], cursorFromEnd: fromEnd };
  }

  #optionLines(width: number): string[] {
    const { options, isMultiple } = this.#prompt;
    const { screen, style } = this.#options;
    const count = Math.max(minShownOptions, screen.rows - reservedRows);
    const start = Math.max(0, Math.min(this.#selected - Math.floor(count / 2), options.length - count));
    const lines = options.slice(start, start + count).flatMap(({ label, hint }, offset) => {
      const index = start + offset;
      const isSelected = index === this.#selected;
      const mark = isMultiple === true ? (this.#marked.has(index) ? "[x] " : "[ ] ") : "";
      const head = `${isSelected ? "❯" : " "} ${index + 1}. ${mark}`;
      const text = toScreenLine(hint === undefined || hint === "" ? label : `${label} (${hint})`);
      const [first = "", ...rest] = wrapLine(text.replaceAll("\n", " "), width - head.length - 2);
      const indent = " ".repeat(head.length);
      return [`  ${head}${first}`, ...rest.map((line) => `  ${indent}${line}`)].map((line) =>
        isSelected ? style.cyan(line) : line,
      );
    });
    const more = options.length - start - count;
    return more > 0 ? [...lines, style.dim(`    ${more} more below`)] : lines;
  }

  #help(): string {
    const { options, textHint, escape, isMultiple, isOptional } = this.#prompt;
    const keys =
      options.length === 0
        ? `Enter${isOptional === true ? " (may be empty)" : ""}`
        : isMultiple === true
          ? "Space or a number to choose, Enter to answer"
          : "Enter or a number";
    const text = textHint === undefined ? "" : options.length === 0 ? `, ${textHint}` : `, or ${textHint}`;
    return `${keys}${text}; Esc to ${escape}`;
  }

  /** The part of the typed line that fits, and the columns between the cursor and its end. */
  #typed(width: number): { readonly text: string; readonly fromEnd: number } {
    const { line, cursor } = this.#reader;
    const before = toScreenLine(line.slice(0, cursor));
    const reversed = Array.from(before).reverse().join("");
    const shown = Array.from(takeColumns(reversed, width)).reverse().join("");
    const after = takeColumns(toScreenLine(line.slice(cursor)), width - widthOf(shown));
    return { text: shown + after, fromEnd: widthOf(after) };
  }
}
