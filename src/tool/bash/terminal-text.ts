import { removeEscapes } from "../../base/text/controls.ts";
import { splitAt, type TextOrBytes, textOf } from "../../base/secrets/text-or-bytes.ts";

/** Maximum length of an unfinished line; a longer one is passed on unchanged. */
const LINE_LIMIT = 64 * 1024;
/** Share of non-text characters above which output counts as binary. */
const BINARY_SHARE = 0.1;

/** Text without these needs no cleaning. Eight plain searches are three times as fast as one expression. */
const SIGNS = ["\x1b", "\r", "\0", "\ufffd", "\b", "\x07", "\x9b", "\x7f"];
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const CONTROLS = /[\x01-\x08\x0b-\x1f\x7f]/g;
// oxlint-disable-next-line no-control-regex -- the same
const NOT_TEXT = /[\x00-\x06\x0e-\x1a\x1c-\x1f\ufffd]/g;
// oxlint-disable-next-line no-control-regex -- the same
const OVERSTRUCK = /[^\n\x08]\x08/g;

/**
 * Turns terminal output into plain text, chunk by chunk: removes escape sequences, and keeps only the last state of
 * an overwritten line (a progress bar). NUL is shown as ␀.
 */
export class TerminalText {
  #open = "";
  #length = 0;
  #notText = 0;

  /** Takes more output and returns the lines that it completes. */
  push(chunk: TextOrBytes): TextOrBytes[] {
    this.#length += chunk.length;
    const [lines, open] = splitAt(chunk, chunk.lastIndexOf("\n") + 1);
    const settled = lines.length === 0 ? [] : this.#settle(lines);
    this.#open += textOf(open);
    return this.#open.length > LINE_LIMIT ? [...settled, this.end()] : settled;
  }

  #settle(lines: TextOrBytes): TextOrBytes[] {
    const start = this.#open;
    this.#open = "";
    const isPlain = typeof lines !== "string" && isClean(lines) && isClean(start);
    return isPlain ? [start, lines] : [this.#clean(start + textOf(lines))];
  }

  /** The unfinished line, as the screen would show it. */
  get openLine(): string {
    const line = toPlainText(this.#open);
    const cut = line.indexOf("\x1b");
    return cut === -1 ? line : line.slice(0, cut);
  }

  /** Returns the rest. */
  end(): string {
    const rest = this.#clean(this.#open);
    this.#open = "";
    return rest;
  }

  get isBinary(): boolean {
    return this.#notText > this.#length * BINARY_SHARE;
  }

  #clean(text: string): string {
    if (isClean(text)) return text;
    this.#notText += text.match(NOT_TEXT)?.length ?? 0;
    return toPlainText(text).replaceAll("\x1b", "");
  }
}

function isClean(chunk: TextOrBytes): boolean {
  return !SIGNS.some((sign) => chunk.includes(sign));
}

/** Cleans text, but keeps a trailing escape sequence that is still incomplete. */
function toPlainText(text: string): string {
  if (isClean(text)) return text;
  const written = removeEscapes(text).replaceAll(/\r+\n/g, "\n");
  const lines = written.includes("\r") ? written.split("\n").map(takeLastState).join("\n") : written;
  return lines
    .replaceAll(OVERSTRUCK, "")
    .replaceAll("\0", "␀")
    .replaceAll(CONTROLS, (character) => (character === "\x1b" ? character : ""));
}

/** Returns the text on screen after carriage returns; leftovers of longer earlier text are ignored. */
function takeLastState(line: string): string {
  return line.split("\r").findLast((state) => state !== "") ?? "";
}
