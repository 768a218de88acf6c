import { excerpt } from "../../base/text/excerpt.ts";
import type { Log } from "../../base/log.ts";

/** Maximum number of stored log lines. */
const linesLimit = 20;
const lineLength = 500;
/** Maximum number of a server's lines in the program's log. */
const loggedLimit = 200;

/** Log lines of a server. The first ones also go to the program's log. */
export class ServerLog {
  readonly #server: string;
  readonly #log: Log;
  #lines: readonly string[] = [];
  #logged = 0;
  #noise = 0;

  constructor(server: string, log: Log) {
    this.#server = server;
    this.#log = log;
  }

  /** Newest last. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Number of stdout lines that were not messages. */
  get noise(): number {
    return this.#noise;
  }

  add(text: string): void {
    const line = excerpt(text, lineLength);
    this.#lines = [...this.#lines, line].slice(-linesLimit);
    this.#logged++;
    if (this.#logged <= loggedLimit) this.#log.info("MCP server log", { server: this.#server, line });
  }

  addNoise(line: string): void {
    this.#noise++;
    this.add(`not a message: ${line}`);
  }
}
