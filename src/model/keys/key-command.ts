import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { messageOf, UserError } from "../../base/errors.ts";
import { excerpt } from "../../base/text/excerpt.ts";
import type { Env } from "../../config/paths.ts";

/** Password managers ask their person, who may look for a phone. */
const timeoutMs = 60_000;
const outputLimitBytes = 64 * 1024;
/** Characters of a failing command's words that are told. */
const wordsLimit = 200;

/** Keys that programs print, such as a password manager. Each command runs when its key is first needed, once. */
export class KeyCommands {
  readonly #env: Env;
  readonly #onKey: (key: string) => void;
  readonly #keys = new Map<string, Promise<string>>();
  readonly #closing = new AbortController();

  /** `onKey` is told each key, so that it is kept out of whatever is handed on. */
  constructor(env: Env, onKey: (key: string) => void) {
    this.#env = env;
    this.#onKey = onKey;
  }

  /** The first line that the command prints. Rejects with {@link UserError}; the next call tries again. */
  keyOf(command: readonly string[]): Promise<string> {
    const name = JSON.stringify(command);
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    const key = this.#run(command);
    this.#keys.set(name, key);
    key.then(this.#onKey, () => this.#keys.delete(name));
    return key;
  }

  /** The next call asks the command again: the key was refused, and some are good for an hour only. */
  forget(command: readonly string[]): void {
    this.#keys.delete(JSON.stringify(command));
  }

  /** Ends what still runs: nobody waits for its key any more. */
  close(): void {
    this.#closing.abort();
  }

  async #run([program = "", ...args]: readonly string[]): Promise<string> {
    const { signal } = this.#closing;
    const options = { env: { ...this.#env }, timeout: timeoutMs, maxBuffer: outputLimitBytes, signal };
    const { stdout } = await promisify(execFile)(program, args, options).catch((error: unknown) => {
      throw new UserError(`The command for the key, ${program}, failed: ${wordsOf(error)}`, { cause: error });
    });
    const key = stdout.split(/\r?\n/, 1)[0]?.trim() ?? "";
    if (key === "") throw new UserError(`The command for the key, ${program}, printed nothing.`);
    return key;
  }
}

/** What the command itself said, else how it ended. What it printed to stdout may be a key. */
function wordsOf(error: unknown): string {
  const said = typeof error === "object" && error !== null && "stderr" in error ? String(error.stderr) : "";
  const words = said.trim() || messageOf(error).split("\n", 1)[0] || "";
  return excerpt(words, wordsLimit);
}
