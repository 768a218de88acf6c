/** One of several answers. */
export interface PromptOption {
  readonly label: string;
  readonly hint?: string;
}

/** A question with options, with text as an answer, or both. */
export interface Prompt {
  readonly options: readonly PromptOption[];
  /** Hint for typed text, such as "type another answer"; undefined if only options are accepted. */
  readonly textHint?: string;
  /** Name of the action of Escape: "reject", "skip". */
  readonly escape: string;
  /** Whether several options can be chosen. */
  readonly isMultiple?: boolean;
  /** Whether an empty answer is accepted where there are no options. */
  readonly isOptional?: boolean;
  /** Finds the option that a typed word names, such as "y". */
  readonly findByWord?: (word: string) => number | undefined;
  /** Returns why a text is not an answer; undefined if it is one. */
  readonly check?: (text: string) => string | undefined;
}

export type PromptAnswer =
  /** Indexes of the chosen options, and the text of the user's own. One of them is not empty, unless it is optional. */
  | { readonly kind: "answered"; readonly chosen: readonly number[]; readonly text: string }
  /** Escape, Ctrl-D, or the end of the input. */
  | { readonly kind: "closed" }
  | { readonly kind: "interrupted" }
  /** The question no longer waits for an answer. */
  | { readonly kind: "withdrawn" };

/** Reads a typed line: a number, a word, a label, or else text. Returns a problem if it is not an answer. */
export function readTyped(
  typed: string,
  prompt: Prompt,
): { readonly chosen: readonly number[]; readonly text: string } | { readonly problem: string } {
  const { options, textHint, isMultiple, isOptional } = prompt;
  const text = typed.trim();
  if (text === "") return isOptional === true ? { chosen: [], text } : { problem: describeExpected(prompt) };
  const words = isMultiple === true ? text.split(/[\s,]+/) : [text];
  const found = words.map((word) => findOption(word, prompt));
  if (found.every((index) => index !== undefined)) return { chosen: [...new Set(found)], text: "" };
  const whole = findOption(text, prompt);
  if (whole !== undefined) return { chosen: [whole], text: "" };
  const isNumber = options.length > 0 && /^\d+$/.test(text);
  if (textHint === undefined || isNumber) return { problem: describeExpected(prompt) };
  const problem = prompt.check?.(text);
  return problem === undefined ? { chosen: [], text } : { problem };
}

function findOption(word: string, { options, findByWord }: Prompt): number | undefined {
  if (/^\d{1,4}$/.test(word)) return options[Number(word) - 1] === undefined ? undefined : Number(word) - 1;
  const label = word.toLowerCase();
  const index = options.findIndex((option) => option.label.toLowerCase() === label);
  return index === -1 ? findByWord?.(word) : index;
}

function describeExpected({ options, textHint }: Prompt): string {
  const number = options.length === 0 ? "" : `a number from 1 to ${options.length}`;
  return `Answer with ${[number, textHint === undefined ? "" : "text"].filter((part) => part !== "").join(" or ")}.`;
}
