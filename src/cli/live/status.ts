import type { Style } from "../terminal/style.ts";
import { formatElapsed } from "./elapsed.ts";
import type { Screen } from "./screen.ts";
import { cutLine, toScreenLine } from "./text-lines.ts";

/** Time between two pictures of the spinner. */
const frameMs = 120;
const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/** Silence within a line of text before a status appears at its end. */
const stallMs = 2_000;
/** Calls and output lines that are shown at once. */
const callLimit = 6;
const outputLimit = 4;

/** A running tool call. */
export interface RunningCall {
  readonly title: string;
  readonly startedAt: number;
  /** Its output so far, oldest line first. */
  lines(): readonly string[];
}

/** Draws what is in progress: the running calls with the newest one's output, or else what the turn waits for. */
export class Status {
  readonly #style: Style;
  readonly #screen: Screen;
  /** In the order of their last change. */
  readonly #calls = new Map<string, RunningCall>();
  #activity = "";
  #since = 0;
  /** End of a known wait, which is counted down. */
  #until: number | undefined;
  /** When the newest text was printed; undefined if no text is open. */
  #textAt: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #pauses = 0;
  #frame = 0;

  constructor({ style, screen }: { style: Style; screen: Screen }) {
    this.#style = style;
    this.#screen = screen;
  }

  start(activity: string): void {
    this.activity(activity);
    if (!this.#screen.isLive) return;
    this.#timer ??= setInterval(() => this.#tick(), frameMs).unref();
    process.on("SIGCONT", this.#onContinue);
    process.on("exit", this.#onExit);
    this.#draw();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    process.off("SIGCONT", this.#onContinue);
    process.off("exit", this.#onExit);
    this.#screen.draw(undefined);
  }

  pause(): void {
    this.#pauses++;
    this.#screen.draw(undefined);
  }

  resume(): void {
    this.#pauses--;
    this.#since = Date.now();
    this.#draw();
  }

  activity(text: string, until?: number): void {
    if (text !== this.#activity || until !== undefined) this.#since = Date.now();
    this.#activity = text;
    this.#until = until;
    this.#draw();
  }

  call(id: string, call: RunningCall): void {
    this.#calls.delete(id);
    this.#calls.set(id, call);
    this.#draw();
  }

  endCall(id: string): void {
    this.#calls.delete(id);
    if (this.#calls.size === 0) this.activity("Waiting for the model");
  }

  /** Called before text of the model is printed. */
  text(): void {
    this.#textAt = Date.now();
    this.#activity = "Waiting for the model";
    this.#since = this.#textAt;
    this.#until = undefined;
    this.#screen.draw(undefined);
  }

  endText(): void {
    this.#textAt = undefined;
  }

  readonly #onContinue = (): void => this.#screen.forget();
  readonly #onExit = (): void => this.#screen.draw(undefined);

  #tick(): void {
    this.#frame++;
    this.#draw();
  }

  #draw(): void {
    if (this.#timer === undefined || this.#pauses > 0) return;
    const spinner = frames[this.#frame % frames.length] ?? "";
    const now = Date.now();
    if (this.#textAt !== undefined && now - this.#textAt < stallMs) return;
    if (this.#screen.isMidLine)
      return this.#screen.drawInline(` ${spinner} ${formatElapsed(now - this.#since)}`);
    this.#screen.draw({ lines: this.#lines(spinner, now) });
  }

  #lines(spinner: string, now: number): string[] {
    const width = this.#screen.columns - 1;
    const running = [...this.#calls.values()].sort((one, other) => one.startedAt - other.startedAt);
    if (running.length === 0) {
      const time =
        this.#until === undefined
          ? formatElapsed(now - this.#since)
          : `${Math.max(0, Math.ceil((this.#until - now) / 1000))} s`;
      return [this.#style.dim(cutLine(`${spinner} ${this.#activity} ${time}`.trimEnd(), width))];
    }
    const newest = [...this.#calls.values()].at(-1);
    const room = Math.max(1, Math.min(callLimit, this.#screen.rows - outputLimit - 2));
    const lines = running.slice(0, room).flatMap((call) => {
      const time = formatElapsed(now - call.startedAt);
      const title = cutLine(call.title, width - time.length - 3);
      const heading = `${this.#style.cyan(spinner)} ${title} ${this.#style.dim(time)}`.trimEnd();
      if (call !== newest) return [heading];
      const output = call
        .lines()
        .filter((line) => line.trim() !== "")
        .slice(-outputLimit);
      return [
        heading,
        ...output.map((line) => `  ${this.#style.dim(cutLine(toScreenLine(line), width - 2))}`),
      ];
    });
    const more = running.length - room;
    return more > 0 ? [...lines, this.#style.dim(`  and ${more} more`)] : lines;
  }
}
