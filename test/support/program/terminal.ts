import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Bell } from "../waiting.ts";
import { environment } from "./environment.ts";

const program = fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url));
const pretence = join(import.meta.dirname, "preload/as-terminal.cjs");

/** The program in a terminal, from the program's point of view. */
export interface Terminal {
  /** Types keys. */
  type(keys: string): void;
  /** Resolves when the screen shows a text that appeared after the previous call. */
  shows(text: string): Promise<void>;
  /** Resolves to the exit code. */
  readonly ended: Promise<unknown>;
  /**
   * The screen's lines from the first one on, including those that a smaller screen would have scrolled away.
   */
  screen(): string;
}

/** Starts the program in a terminal that renders its output. */
export function startInTerminal(
  home: string,
  args: readonly string[],
  { cwd, columns = 80, env = {} }: { cwd: string; columns?: number; env?: Record<string, string> },
): Terminal {
  // Both streams use one pipe, so that their order is kept.
  const child = spawn("sh", ["-c", 'exec "$0" "$@" 2>&1', process.execPath, program, ...args], {
    cwd,
    env: {
      ...environment(home),
      NODE_OPTIONS: `--require=${pretence}`,
      TERMINAL_COLUMNS: String(columns),
      TERM: "xterm",
      NO_COLOR: "1",
      ...env,
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const drawn = new DrawnText(columns);
  const bell = new Bell();
  let printed = "";
  let seen = 0;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
    drawn.write(text);
    bell.ring();
  });
  return {
    type: (keys) => child.stdin.write(keys),
    shows: async (text) => {
      const find = () => {
        const at = printed.indexOf(text, seen);
        return at === -1 ? undefined : at + text.length;
      };
      seen = await bell.until(
        find,
        `the terminal to show ${JSON.stringify(text)} after: ${printed.slice(-500)}`,
      );
    },
    ended: once(child, "close").then(([code]): unknown => code),
    screen: () => drawn.toString(),
  };
}

/** The few control sequences that the program uses. */
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const sequences = /\u001b(?:\[(\d*)([A-Za-z])|([78]))|[\s\S]/gu;
const isWide = /[\u{1100}-\u{115F}\u{2E80}-\u{A4CF}\u{AC00}-\u{D7A3}\u{FF00}-\u{FF60}]/u;

/** Renders a terminal's screen after all output. A wide character fills two cells; the second is empty. */
class DrawnText {
  readonly #columns: number;
  readonly #rows: string[][] = [[]];
  #row = 0;
  #column = 0;
  #saved = 0;

  constructor(columns: number) {
    this.#columns = columns;
  }

  write(text: string): void {
    for (const [part, count = "", letter, digit] of text.matchAll(sequences)) {
      if (digit !== undefined) this.#saveOrRestore(digit);
      else if (letter !== undefined) this.#control(letter, Number(count === "" ? 1 : count));
      else this.#put(part);
    }
  }

  toString(): string {
    const lines = this.#rows.map((row) =>
      Array.from(row, (cell) => cell ?? " ")
        .join("")
        .trimEnd(),
    );
    return lines.join("\n").trimEnd();
  }

  #saveOrRestore(digit: string): void {
    if (digit === "7") this.#saved = this.#column;
    else this.#column = this.#saved;
  }

  #control(letter: string, count: number): void {
    if (letter === "A") this.#row = Math.max(0, this.#row - count);
    else if (letter === "D") this.#column = Math.max(0, this.#column - count);
    else if (letter === "K" || letter === "J") {
      this.#line().length = Math.min(this.#line().length, this.#column);
      if (letter === "J") this.#rows.length = this.#row + 1;
    } else if (letter !== "m") throw new Error(`This terminal does not know the control sequence ${letter}.`);
  }

  #put(character: string): void {
    if (character === "\n") {
      this.#row++;
      this.#column = 0;
    } else if (character === "\r") this.#column = 0;
    else {
      const width = isWide.test(character) ? 2 : 1;
      if (this.#column + width > this.#columns) this.#put("\n");
      const line = this.#line();
      line[this.#column] = character;
      if (width === 2) line[this.#column + 1] = "";
      this.#column += width;
    }
  }

  #line(): string[] {
    return (this.#rows[this.#row] ??= []);
  }
}
