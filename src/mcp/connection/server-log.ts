import { excerpt } from "../../base/text/excerpt.ts";
import type { Log } from "../../base/log.ts";

/** What a server said for people that is kept. */
const linesLimit = 20;
const lineLength = 500;
/** Lines of a server that are written to the program's own log in all. */
const loggedLimit = 200;

/** What a server said for people; the first lines also go into the program's log. */
export class ServerLog {
  readonly #server: string;
  readonly #log: Log;
  #lines: readonly string[] = [];
  #said = 0;
  #noise = 0;

  constructor(server: string, log: Log) {
    this.#server = server;
    this.#log = log;
  }

  /** The newest last. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Lines among its messages that were none. */
  get noise(): number {
    return this.#noise;
  }

  say(text: string): void {
    const line = excerpt(text, lineLength);
    this.#lines = [...this.#lines, line].slice(-linesLimit);
    this.#said++;
    if (this.#said <= loggedLimit) this.#log.info("an MCP server says", { server: this.#server, line });
  }

  sayNoise(line: string): void {
    this.#noise++;
    this.say(`not a message: ${line}`);
  }
}
