import { removeControls } from "../../base/text/controls.ts";

/** One of several answers. */
export interface Choice {
  readonly value: string;
  readonly label: string;
  readonly hint?: string;
}

/** Why an answer will not do; undefined is fine. */
export type Check = (answer: string) => string | undefined;

export interface ChooseOptions {
  /** The value that an empty answer means. */
  readonly first?: string;
  /** Whether a text that is no choice is an answer too. It is returned as typed, and never shown: it may be a key. */
  readonly accepts?: (typed: string) => boolean;
}

/** Puts questions to the person at the keyboard. Each rejects with {@link WindowQuerysCancelledError} where the person goes away. */
export interface Questions {
  /** Answers the value of a choice. */
  choose(question: string, choices: readonly Choice[], options?: ChooseOptions): Promise<string>;
  /** An empty answer is the suggestion, where there is one. */
  text(question: string, options?: { suggestion?: string; check?: Check }): Promise<string>;
  /** Like text, but nothing of the answer is shown. */
  secret(question: string, check?: Check): Promise<string>;
  confirm(question: string, suggestion: boolean): Promise<boolean>;
  say(text: string): void;
  /** Lines that are to be copied. */
  show(title: string, text: string): void;
  /** Shows that something goes on. */
  wait<T>(what: string, work: Promise<T>): Promise<T>;
  close(): void;
}

/** The person broke it off. */
export class QuestionsCancelledError extends Error {
  override readonly name = "Stopped";
}

/** Characters of an answer; the longest keys have about 2,000. */
const answerLimit = 8_000;

/** Why a line cannot be an answer to any question. */
export function lineProblem(answer: string): string | undefined {
  if (answer.length > answerLimit) return "That is too long.";
  return removeControls(answer) === answer && !/[\t\n]/.test(answer)
    ? undefined
    : "That contains control characters.";
}
