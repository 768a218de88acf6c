import { promisify } from "node:util";
import { messageOf, UserError } from "../../base/errors.ts";
import { excerpt } from "../../base/text/excerpt.ts";
import type { Env } from "../../config/paths.ts";

/** Long enough for a user to confirm in a password manager. */
const timeoutMs = 60_000;
const outputLimitBytes = 64 * 1024;
/** Maximum length of a failing command's message, in characters. */
const messageLimit = 200;

/** Keys printed by commands, such as a password manager. Each command runs once, when its key is first needed. */
export class KeyCommands {
  readonly #env: Env;
  readonly #onKey: (key: string) => void;
  readonly #keys = new Map<string, Promise<string>>();
  readonly #closing = new AbortController();

  /** `onKey` receives each key, so that it can be redacted. */
  constructor(env: Env, onKey: (key: string) => void) {
    this.#env = env;
    this.#onKey = onKey;
  }

  /** Returns the first line that the command prints. Rejects with {@link UserError}; the next call tries again. */
  keyOf(command: readonly string[]): Promise<string> {
    const name = JSON.stringify(command);
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    const key = this.#run(command);
    this.#keys.set(name, key);
    key.then(this.#onKey, () => this.#keys.delete(name));
    return key;
  }

  /** Makes the next call run the command again, after the key was rejected. Some keys expire within an hour. */
  forget(command: readonly string[]): void {
    this.#keys.delete(JSON.stringify(command));
  }

  /** Terminates running commands. */
  close(): void {
    this.#closing.abort();
  }

  async #run([program = "", ...args]: readonly string[]): Promise<string> {
    const { signal } = this.#closing;
    const options = { env: { ...this.#env }, timeout: timeoutMs, maxBuffer: outputLimitBytes, signal };
    const { execFile } = await import("node:child_process");
    const { stdout } = await promisify(execFile)(program, args, options).catch((error: unknown) => {
      throw new UserError(`The command for the key, ${program}, failed: ${describeError(error)}`, {
        cause: error,
      });
    });
    const key = stdout.split(/\r?\n/, 1)[0]?.trim() ?? "";
    if (key === "") throw new UserError(`The command for the key, ${program}, printed nothing.`);
    return key;
  }
}

/** Returns the command's stderr, or else how it ended. Its stdout may be a key. */
function describeError(error: unknown): string {
  const stderr = typeof error === "object" && error !== null && "stderr" in error ? String(error.stderr) : "";
  const message = stderr.trim() || messageOf(error).split("\n", 1)[0] || "";
  return excerpt(message, messageLimit);
}
