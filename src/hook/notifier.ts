import { orAfter } from "../base/async.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { removeControls } from "../base/text/controls.ts";
import { excerpt } from "../base/text/excerpt.ts";
import type { Config } from "../config/schema.ts";
import type { PipedProcesses } from "../workspace/process/piped-process.ts";

/** Time for the program of a notification. */
const programLimitMs = 10_000;
/** Characters of a notification's text. */
const textLimit = 300;

/** An event of which an absent user is notified. */
export interface Attention {
  readonly event: "turn-end" | "question";
  readonly session: string;
  readonly title: string;
  readonly message: string;
  /** Duration of the turn that ended. */
  readonly seconds?: number;
}

export interface NotifierDeps {
  readonly settings: NonNullable<Config["notify"]>;
  readonly processes: PipedProcesses;
  readonly cwd: string;
  /** Writes to the terminal; undefined without one. */
  readonly terminal: ((text: string) => void) | undefined;
  readonly log: Log;
}

/** Notifies the user as configured. */
export class Notifier {
  readonly #deps: NotifierDeps;

  constructor(deps: NotifierDeps) {
    this.#deps = deps;
  }

  /** Resolves when the program has ended. Never rejects. */
  async notify(attention: Attention): Promise<void> {
    const { command, terminal, min_seconds = 0 } = toSettings(this.#deps.settings);
    if (attention.seconds !== undefined && attention.seconds < min_seconds) return;
    const title = toOneLine(attention.title);
    const message = toOneLine(attention.message);
    if (terminal === "bell") this.#deps.terminal?.(bell);
    if (terminal === "osc9") this.#deps.terminal?.(`${escape}]9;${title}: ${message}${bell}`);
    if (command !== undefined) await this.#run(command, { ...attention, title, message });
  }

  async #run(words: readonly string[], { event, session, title, message }: Attention): Promise<void> {
    const { processes, cwd, log } = this.#deps;
    const values: Readonly<Record<string, string>> = { event, session, title, message };
    const [command = "", ...args] = words.map((word, index) =>
      index === 0
        ? word
        : word.replaceAll(/\{(event|session|title|message)\}/g, (_, name: string) => values[name] ?? ""),
    );
    try {
      const program = await processes.start({ command, args, cwd, env: {} });
      program.input.end(JSON.stringify(values));
      program.output.resume();
      program.errors.resume();
      const ended = await orAfter(program.exited, programLimitMs, undefined);
      if (ended === undefined) await program.end();
      if (ended?.code !== 0) log.warn("notification failed", { command, code: ended?.code ?? "timeout" });
    } catch (error) {
      log.warn("notification failed", { command, error: messageOf(error) });
    }
  }
}

const escape = "\u001b";
const bell = "\u0007";

function toSettings(settings: NotifierDeps["settings"]) {
  if (settings === "bell" || settings === "osc9") return { terminal: settings };
  return Array.isArray(settings) ? { command: settings } : settings;
}

/** A title comes from a model: it must not contain codes for the terminal. */
function toOneLine(text: string): string {
  return excerpt(removeControls(text).replaceAll(/\s+/g, " ").trim(), textLimit);
}
