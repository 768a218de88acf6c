/** How much of the text's end is looked at, in characters. */
const windowLength = 16_000;
/** New characters after which it is looked at again; the cost of a character is their ratio. */
const checkEvery = 4_000;
/** The longest passage of which ten in a row fill the window. */
const longestPassage = windowLength / 10;
/** Shorter ones are lines, dots and filling, of which there may be many. */
const shortestPassage = 48;
/** Looks in a row that found nothing but filling, after which even that counts. One huge piece is one look. */
const fillingLimit = 500;

/** A passage that a model wrote again and again. */
export interface Repetition {
  /** Characters of one passage. */
  length: number;
  text: string;
}

/**
 * Watches a text that streams for the same passage over and over, which small models fall into and do not leave.
 * Costs the same few steps for each character and keeps the end of the text only.
 */
export class TextLoopDetector {
  #tail = "";
  #pieces: string[] = [];
  #unchecked = 0;
  #filling = 0;

  /** What is repeated, as soon as that is sure. */
  add(text: string): Repetition | undefined {
    this.#pieces.push(text);
    this.#unchecked += text.length;
    if (this.#unchecked < checkEvery) return undefined;
    this.#tail = (this.#tail + this.#pieces.join("")).slice(-windowLength);
    this.#pieces = [];
    this.#unchecked = 0;
    if (this.#tail.length < windowLength) return undefined;
    const length = shortestPeriod(this.#tail);
    if (length > longestPassage) this.#filling = 0;
    else if (length < shortestPassage) this.#filling++;
    const isLoop = (length >= shortestPassage && length <= longestPassage) || this.#filling > fillingLimit;
    return isLoop ? { length, text: this.#tail.slice(-length) } : undefined;
  }
}

/** The length of the shortest passage that, repeated, gives the whole text; one walk over it (Knuth, Morris, Pratt). */
export function shortestPeriod(text: string): number {
  const borders = new Int32Array(text.length);
  let border = 0;
  for (let index = 1; index < text.length; index++) {
    while (border > 0 && text[index] !== text[border]) border = borders[border - 1] ?? 0;
    if (text[index] === text[border]) border++;
    borders[index] = border;
  }
  return text.length - border;
}

/** Texts of steps that are shorter may well be the same: "Let me look." */
const shortestStepText = 80;
/** Steps in a row that say the same. */
const stepsLimit = 8;

/** Watches what a model says from step to step. */
export class StepLoopDetector {
  #last = "";
  #count = 0;

  /** Whether the newest text is the same as in all of the last steps. */
  isLoop(text: string): boolean {
    const said = text.trim();
    this.#count = said === this.#last ? this.#count + 1 : 1;
    this.#last = said;
    return said.length >= shortestStepText && this.#count >= stepsLimit;
  }
}

/** How much of a passage the person is shown. */
const shownLength = 80;

/** For the person: what was repeated, and what to do. */
export function repetitionText({ length, text }: Repetition): string {
  const shown = text.replace(/\s+/g, " ").trim().slice(0, shownLength);
  return `The model repeats itself: it wrote the same ${length} characters over and over ("${shown}…"), so its answer was stopped. Ask again in other words, or choose another model.`;
}
