/** How models write their thoughts into the text itself, where the server does not take them out. */
const tags: readonly { open: string; close: string }[] = [
  { open: "<think>", close: "</think>" },
  { open: "[THINK]", close: "[/THINK]" },
];

interface TaggedText {
  readonly kind: "text" | "reasoning";
  readonly text: string;
}

/** Tells thoughts from text as they stream. They count only at the very beginning: later on, such words are text. */
export class ThinkTags {
  #state: "start" | "inside" | "between" | "text" = "start";
  #close = "";
  /** What may be a part of a tag. */
  #held = "";

  /** Whether all that comes is text. */
  get isOver(): boolean {
    return this.#state === "text";
  }

  add(text: string): TaggedText[] {
    if (this.#state === "text") return [{ kind: "text", text }];
    const whole = this.#held + text;
    this.#held = "";
    if (this.#state === "start") return this.#start(whole);
    return this.#state === "inside" ? this.#inside(whole) : this.#between(whole);
  }

  /** What was held back when the answer ends. */
  end(): TaggedText[] {
    const text = this.#held;
    this.#held = "";
    return text === "" ? [] : [{ kind: this.#state === "inside" ? "reasoning" : "text", text }];
  }

  #start(whole: string): TaggedText[] {
    const begun = whole.trimStart();
    if (tags.some(({ open }) => open.startsWith(begun))) return this.#hold(whole);
    const tag = tags.find(({ open }) => begun.startsWith(open));
    if (tag === undefined) return this.#text(whole);
    this.#state = "inside";
    this.#close = tag.close;
    return this.#inside(begun.slice(tag.open.length));
  }

  #inside(whole: string): TaggedText[] {
    const end = whole.indexOf(this.#close);
    if (end < 0) {
      const safe = whole.length - beginningAtEnd(whole, this.#close);
      this.#held = whole.slice(safe);
      return [{ kind: "reasoning", text: whole.slice(0, safe) }];
    }
    this.#state = "between";
    return [
      { kind: "reasoning", text: whole.slice(0, end) },
      ...this.#between(whole.slice(end + this.#close.length)),
    ];
  }

  /** Empty lines part the thoughts from the text. */
  #between(whole: string): TaggedText[] {
    const text = whole.trimStart();
    return text === "" ? [] : this.#text(text);
  }

  #text(text: string): TaggedText[] {
    this.#state = "text";
    return [{ kind: "text", text }];
  }

  #hold(text: string): TaggedText[] {
    this.#held = text;
    return [];
  }
}

/** How many characters at the end of a text may be the beginning of the tag. */
function beginningAtEnd(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}
