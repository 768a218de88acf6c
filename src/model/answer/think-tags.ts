/** Tags around reasoning in the text, for servers that do not extract it. */
const tags: readonly { open: string; close: string }[] = [
  { open: "<think>", close: "</think>" },
  { open: "[THINK]", close: "[/THINK]" },
];

export interface TaggedText {
  readonly kind: "text" | "reasoning";
  readonly text: string;
}

/** Separates reasoning from text as they stream. Tags count only at the start of an answer; later they are text. */
export class ThinkTags {
  #state: "start" | "inside" | "between" | "text" = "start";
  #close = "";
  /** Text that may be part of a tag. */
  #heldBack = "";

  add(text: string): TaggedText[] {
    if (this.#state === "text") return [{ kind: "text", text }];
    const whole = this.#heldBack + text;
    this.#heldBack = "";
    if (this.#state === "start") return this.#start(whole);
    return this.#state === "inside" ? this.#inside(whole) : this.#between(whole);
  }

  /** Returns the held back text when the answer ends. */
  end(): TaggedText[] {
    const text = this.#heldBack;
    this.#heldBack = "";
    return text === "" ? [] : [{ kind: this.#state === "inside" ? "reasoning" : "text", text }];
  }

  #start(whole: string): TaggedText[] {
    const started = whole.trimStart();
    if (tags.some(({ open }) => open.startsWith(started))) return this.#hold(whole);
    const tag = tags.find(({ open }) => started.startsWith(open));
    if (tag === undefined) return this.#text(whole);
    this.#state = "inside";
    this.#close = tag.close;
    return this.#inside(started.slice(tag.open.length));
  }

  #inside(whole: string): TaggedText[] {
    const end = whole.indexOf(this.#close);
    if (end < 0) {
      const safe = whole.length - prefixLengthAtEnd(whole, this.#close);
      this.#heldBack = whole.slice(safe);
      return [{ kind: "reasoning", text: whole.slice(0, safe) }];
    }
    this.#state = "between";
    return [
      { kind: "reasoning", text: whole.slice(0, end) },
      ...this.#between(whole.slice(end + this.#close.length)),
    ];
  }

  /** Drops white space between reasoning and text. */
  #between(whole: string): TaggedText[] {
    const text = whole.trimStart();
    return text === "" ? [] : this.#text(text);
  }

  #text(text: string): TaggedText[] {
    this.#state = "text";
    return [{ kind: "text", text }];
  }

  #hold(text: string): TaggedText[] {
    this.#heldBack = text;
    return [];
  }
}

/** Returns how many characters at the end of the text are a prefix of the tag. */
function prefixLengthAtEnd(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}
