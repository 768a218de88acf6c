import type { Printer } from "../live/printer.ts";
import type { Screen } from "../live/screen.ts";
import { toScreenLine } from "../live/text-lines.ts";
import type { Style } from "../terminal/style.ts";
import type { Prompt, PromptAnswer } from "./prompt.ts";

interface AskerOptions {
  readonly printer: Printer;
  readonly screen: Screen;
  readonly style: Style;
}

/** Asks the user on the terminal, one question after another. */
export class Asker {
  readonly #options: AskerOptions;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: AskerOptions) {
    this.#options = options;
  }

  /** Runs `ask` when earlier questions have been answered. It prints its question itself. */
  async inTurn<T>(ask: () => Promise<T>): Promise<T> {
    const run = this.#last.then(() => this.#options.printer.withQuestion(ask));
    this.#last = run.catch(() => {});
    return run;
  }

  /** Asks one question; only within {@link inTurn}. */
  async ask(prompt: Prompt, signal: AbortSignal): Promise<PromptAnswer> {
    const { screen, style, printer } = this.#options;
    if (signal.aborted) return { kind: "withdrawn" };
    const { stdin: input, stderr: output } = process;
    if (screen.isLive && typeof input.setRawMode === "function") {
      const { askDrawn } = await import("./drawn-prompt.ts");
      return askDrawn(prompt, { screen, style, input, signal });
    }
    const { askByLine } = await import("./line-prompt.ts");
    return askByLine(prompt, { input, output, signal, say: (line) => printer.line(line) });
  }

  /** Prints the question. */
  question(text: string): void {
    this.say(this.#options.style.yellow(`? ${toScreenLine(text)}`));
  }

  /** Prints a line of a question. */
  say(text: string): void {
    this.#options.printer.line(text);
  }

  /** Prints the answer. */
  confirm(text: string): void {
    this.say(this.#options.style.cyan(`  → ${text}`));
  }
}
