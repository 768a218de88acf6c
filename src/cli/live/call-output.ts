/** Maximum characters of one line; the rest is dropped. */
const lineLength = 1_000;
/** First and last lines that are remembered. */
const headLines = 3;
const tailLines = 8;

/** The first and last lines of a running command's output. */
export class CallOutput {
  readonly #head: string[] = [];
  readonly #tail: string[] = [];
  /** The line that is not ended yet. */
  #open = "";
  #count = 0;

  add(text: string): void {
    const [first = "", ...rest] = text.split("\n");
    this.#extend(first);
    for (const line of rest) {
      this.#close();
      this.#extend(line);
    }
  }

  /** The newest lines, at most `count`. */
  last(count: number): string[] {
    const lines = [...this.#head, ...this.#tail, ...(this.#open === "" ? [] : [this.#open])];
    return lines.map(toVisible).slice(-count);
  }

  /** The remembered lines, with the number of those left out between them. */
  summary(): { readonly head: string[]; readonly omitted: number; readonly tail: string[] } {
    const tail = this.#open === "" ? this.#tail : [...this.#tail, this.#open].slice(-tailLines);
    const count = this.#count + (this.#open === "" ? 0 : 1);
    return {
      head: this.#head.map(toVisible),
      omitted: count - this.#head.length - tail.length,
      tail: tail.map(toVisible),
    };
  }

  #extend(text: string): void {
    this.#open = (this.#open + text).slice(-lineLength);
  }

  #close(): void {
    const line = this.#open;
    this.#open = "";
    this.#count++;
    if (this.#head.length < headLines) this.#head.push(line);
    else {
      this.#tail.push(line);
      if (this.#tail.length > tailLines) this.#tail.shift();
    }
  }
}

/** Programs that show progress overwrite their line after a carriage return. */
function toVisible(line: string): string {
  const ended = line.endsWith("\r") ? line.slice(0, -1) : line;
  return ended.slice(ended.lastIndexOf("\r") + 1);
}
