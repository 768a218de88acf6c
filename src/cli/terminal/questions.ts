import { removeControls } from "../../base/text/controls.ts";

/** One of several answers. */
export interface Choice {
  readonly value: string;
  readonly label: string;
  readonly hint?: string;
}

/** Returns why an answer is invalid; undefined when it is valid. */
export type Check = (answer: string) => string | undefined;

export interface ChooseOptions {
  /** Value of an empty answer. */
  readonly suggestion?: string;
  /** Whether to accept a text that is not a choice. Such a text is returned as typed and never shown: it may be a key. */
  readonly accepts?: (typed: string) => boolean;
}

/** Asks the user. Every question rejects with {@link QuestionsCancelledError} when the user cancels or the input ends. */
export interface Questions {
  /** Returns the value of the selected choice, or an accepted text. */
  choose(question: string, choices: readonly Choice[], options?: ChooseOptions): Promise<string>;
  /** Asks for text. An empty answer means the suggestion. */
  text(question: string, options?: { suggestion?: string; check?: Check }): Promise<string>;
  /** Asks for text without showing it. */
  secret(question: string, check?: Check): Promise<string>;
  confirm(question: string, suggestion: boolean): Promise<boolean>;
  say(text: string): void;
  /** Shows lines for copying. */
  show(title: string, text: string): void;
  /** Shows that work is in progress. */
  wait<T>(what: string, work: Promise<T>): Promise<T>;
  close(): void;
}

/** The user cancelled, or the input ended. */
export class QuestionsCancelledError extends Error {
  override readonly name = "QuestionsCancelledError";
}

/** Characters of an answer; the longest keys have about 2,000. */
const answerLimit = 8_000;

/** Returns why a line is not a valid answer to any question; undefined when it is. */
export function findLineProblem(answer: string): string | undefined {
  if (answer.length > answerLimit) return "That is too long.";
  return removeControls(answer) === answer && !/[\t\n]/.test(answer)
    ? undefined
    : "That contains control characters.";
}
