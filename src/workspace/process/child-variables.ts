import type { Secrets } from "../../base/secrets/secrets.ts";
import { createChildEnvironment, type Environment, toNamePattern } from "./environment.ts";

/**
 * Environment of child processes: no credentials except those that the user named, and no settings that make
 * a program wait for input.
 */
export class ChildEnvironment {
  readonly #env: Environment;
  readonly #secrets: Secrets;
  #names: readonly string[] = [];
  #keptPatterns: readonly RegExp[] = [];
  /** Computed when the first program starts. */
  #passedOn: Readonly<Record<string, string>> | undefined;

  constructor(env: Environment, secrets: Secrets) {
    this.#env = env;
    this.#secrets = secrets;
  }

  /** Sets the names of credentials to pass on (`*` matches any characters). */
  keep(names: readonly string[]): void {
    if (names.join() === this.#names.join()) return;
    this.#names = names;
    this.#keptPatterns = names.map(toNamePattern);
    this.#passedOn = undefined;
  }

  /** The current environment. Known secret values are removed under any name that the user did not list. */
  get(): Record<string, string> {
    this.#passedOn ??= createChildEnvironment(this.#env, { keep: this.#names });
    const entries = Object.entries(this.#passedOn);
    return Object.fromEntries(
      entries.filter(([name, value]) => this.#isKept(name) || !this.#secrets.isIn(value)),
    );
  }

  #isKept(name: string): boolean {
    return this.#keptPatterns.some((pattern) => pattern.test(name));
  }
}
