import type { Secrets } from "../../base/secrets/secrets.ts";
import { childEnvironment, type Environment, toNamePattern } from "./environment.ts";

/**
 * The environment of child processes: no credentials except those that the user named, and no settings that make a
 * program wait for input.
 */
export class ChildVariables {
  readonly #env: Environment;
  readonly #secrets: Secrets;
  #names: readonly string[] = [];
  #kept: readonly RegExp[] = [];
  /** Computed when the first program starts. */
  #passedOn: Readonly<Record<string, string>> | undefined;

  constructor(env: Environment, secrets: Secrets) {
    this.#env = env;
    this.#secrets = secrets;
  }

  /** From now on these credentials are passed on (`*` stands for any characters), and no others. */
  keep(names: readonly string[]): void {
    if (names.join() === this.#names.join()) return;
    this.#names = names;
    this.#kept = names.map(toNamePattern);
    this.#passedOn = undefined;
  }

  /** As a program that starts now sees it. A known key is withheld by whatever name, unless it was meant by that. */
  now(): Record<string, string> {
    this.#passedOn ??= childEnvironment(this.#env, { keep: this.#names });
    const entries = Object.entries(this.#passedOn);
    return Object.fromEntries(
      entries.filter(([name, value]) => this.#isKept(name) || !this.#secrets.isIn(value)),
    );
  }

  #isKept(name: string): boolean {
    return this.#kept.some((pattern) => pattern.test(name));
  }
}
