import { removeEscapes } from "../../base/text/controls.ts";
import { widthOf } from "../terminal/output.ts";

/** Matches a line break, white space, one character of a script without spaces with its punctuation, or a word. */
const tokens =
  /\n|[^\S\n]+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}][\p{P}ー]*|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+/gu;
const spaceless = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;
const listMark = /^(?:[-*+•]|\d{1,9}[.)])$/;
const fence = /^(?:```|~~~)/;
/** Deeper continuation lines would leave too little for the text. */
const maxIndent = 12;

/**
 * Breaks text between words while it arrives. Lines of code blocks and tables are not broken, so that they can be
 * copied.
 */
export class LineWrapper {
  readonly #columns: () => number;
  /** The word that may continue, and the white space before it. */
  #word = "";
  #space = "";
  /** Column after the printed text. */
  #column = 0;
  #isLineStart = true;
  /** Columns before the continuation of the line. */
  #indent = 0;
  #isVerbatim = false;
  #isFenced = false;
  /** Whether a break is allowed without a space. */
  #isBreakable = false;

  constructor(columns: () => number) {
    this.#columns = columns;
  }

  /** Whether text waits for its word to end. */
  get isHolding(): boolean {
    return this.#word !== "" || this.#space !== "";
  }

  /** Returns what to print now: all but the last word, which may continue. */
  add(text: string): string {
    const found = `${this.#space}${this.#word}${text}`.match(tokens) ?? [];
    this.#space = this.#word = "";
    const last = found.at(-1) ?? "";
    if (last.trim() !== "" && widthOf(last) <= this.#columns()) this.#word = found.pop() ?? "";
    return found.map((token) => this.#accept(token)).join("");
  }

  /** Returns what is left to print. Text that follows without a space continues in the same line. */
  flush(): string {
    const word = this.#word;
    this.#word = "";
    return word === "" ? this.#takeSpace() : this.#print(word);
  }

  #accept(token: string): string {
    if (token === "\n") return this.#endLine();
    if (token.trim() !== "") return this.#print(token);
    this.#space = token;
    return "";
  }

  #endLine(): string {
    const space = this.#takeSpace();
    this.#isLineStart = true;
    this.#column = this.#indent = 0;
    return `${space}\n`;
  }

  /** Spaces beyond the end of the line are dropped. */
  #takeSpace(): string {
    const space = this.#space;
    this.#space = "";
    if (!this.#isVerbatim && this.#column + space.length > this.#columns()) return "";
    this.#column += space.length;
    return space;
  }

  #print(word: string): string {
    const width = widthOf(removeEscapes(word));
    const isSpaceless = spaceless.test(word);
    const canBreak = this.#space !== "" || isSpaceless || (this.#isBreakable && !/^\p{P}/u.test(word));
    this.#isBreakable = isSpaceless;
    if (this.#isLineStart) this.#beginLine(word, width);
    else if (canBreak && !this.#isVerbatim && this.#column + this.#space.length + width > this.#columns()) {
      this.#space = "";
      this.#column = this.#indent + width;
      return `\n${" ".repeat(this.#indent)}${word}`;
    }
    const space = this.#space;
    this.#space = "";
    this.#column += space.length + width;
    return space + word;
  }

  #beginLine(word: string, width: number): void {
    this.#isLineStart = false;
    const isFence = fence.test(word);
    this.#isVerbatim = isFence || this.#isFenced || word.startsWith("|");
    if (isFence) this.#isFenced = !this.#isFenced;
    const indent = this.#space.length + (listMark.test(word) ? width + 1 : 0);
    this.#indent = indent > Math.min(maxIndent, this.#columns() / 2) ? 0 : indent;
  }
}

/** Wraps a whole text between words, which may have colors. */
export function wrapLines(text: string, columns: number): string {
  const wrapper = new LineWrapper(() => columns);
  return wrapper.add(text) + wrapper.flush();
}
