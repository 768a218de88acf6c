/** Length of the checked end of the text, in characters. */
const windowLength = 16_000;
/** New characters between two checks; the cost per character is windowLength / checkEvery. */
export const checkEvery = 4_000;
/** Longest detectable passage: ten repetitions fill the window. */
const maxPassage = windowLength / 10;
/** Shorter passages are lines, dots and padding, which may legitimately repeat. */
const minPassage = 48;
/**
 * Consecutive checks that find only padding, after which padding counts as a loop. A single huge delta is one check.
 */
const paddingCheckLimit = 500;

/** A passage that a model repeated. */
export interface Repetition {
  /** Length of one passage in characters. */
  length: number;
  text: string;
}

/**
 * Detects a streamed text that repeats the same passage, a state that small models do not leave. Cost per character is
 * constant; only the end of the text is stored.
 */
export class TextLoopDetector {
  #tail = "";
  #paddingChecks = 0;

  /** Adds at least {@link checkEvery} characters. Returns the repetition once one is detected. */
  add(text: string): Repetition | undefined {
    this.#tail = (this.#tail + text).slice(-windowLength);
    if (this.#tail.length < windowLength) return undefined;
    const length = shortestPeriod(this.#tail);
    if (length > maxPassage) this.#paddingChecks = 0;
    else if (length < minPassage) this.#paddingChecks++;
    const isLoop = (length >= minPassage && length <= maxPassage) || this.#paddingChecks > paddingCheckLimit;
    return isLoop ? { length, text: this.#tail.slice(-length) } : undefined;
  }
}

/** Returns the shortest period of the text in linear time (Knuth-Morris-Pratt). */
export function shortestPeriod(text: string): number {
  const borders = new Int32Array(text.length);
  let border = 0;
  for (let index = 1; index < text.length; index++) {
    const code = text.charCodeAt(index);
    while (border > 0 && code !== text.charCodeAt(border)) border = borders[border - 1] ?? 0;
    if (code === text.charCodeAt(border)) border++;
    borders[index] = border;
  }
  return text.length - border;
}

/** Shorter step texts may be equal without being a loop: "Let me look." */
const minStepText = 80;
/** Consecutive steps with equal text that count as a loop. */
const stepsLimit = 8;

/** Detects a model that writes the same text in each step. */
export class StepLoopDetector {
  #last = "";
  #count = 0;

  /** Adds the newest text; returns whether it equals all of the last steps. */
  isLoop(text: string): boolean {
    const trimmed = text.trim();
    this.#count = trimmed === this.#last ? this.#count + 1 : 1;
    this.#last = trimmed;
    return trimmed.length >= minStepText && this.#count >= stepsLimit;
  }
}

/** Characters of a passage that are shown to the user. */
const shownLength = 80;

/** Stops a call whose model repeats itself; the message is for the user. */
export class RepeatedTextError extends Error {
  constructor({ length, text }: Repetition) {
    const shown = text.replace(/\s+/g, " ").trim().slice(0, shownLength);
    super(
      `The model repeats itself: it repeated the same ${length} characters ("${shown}…"), so its answer was stopped. Rephrase the request, or choose another model.`,
    );
  }
}
