import { hasVisibleText } from "../../base/text/controls.ts";
import { isHighSurrogate } from "../../base/text/excerpt.ts";
import type { TextCalls } from "./written-calls/text-calls.ts";
import type { WrittenCall } from "./written-calls/find-calls.ts";

export interface TaggedText {
  readonly kind: "text" | "reasoning";
  readonly text: string;
}

type Kind = TaggedText["kind"];

/** Divides the text of an answer into text, reasoning and calls while it streams. */
export class AnswerText {
  readonly #tags = new ThinkTags();
  /** Finds calls written as text; undefined if the model writes none. */
  readonly #calls: TextCalls | undefined;
  /** A high surrogate at the end of the last text. Dropped if the text does not continue. */
  #highSurrogate = "";
  #highSurrogateKind: Kind = "text";

  constructor(calls: TextCalls | undefined) {
    this.#calls = calls;
  }

  /** Returns what can be shown now. The text may end in the middle of a surrogate pair. */
  add(kind: Kind, delta: string): TaggedText[] {
    const joined = (this.#highSurrogateKind === kind ? this.#highSurrogate : "") + delta;
    const text = isHighSurrogate(joined.charCodeAt(joined.length - 1)) ? joined.slice(0, -1) : joined;
    this.#highSurrogate = joined.slice(text.length);
    this.#highSurrogateKind = kind;
    return this.#findCalls(kind === "text" ? this.#tags.add(text) : [{ kind, text }]);
  }

  /** Returns the text that is held back, which contains no calls. */
  release(): TaggedText[] {
    this.#highSurrogate = "";
    return [...this.#findCalls(this.#tags.end()), ...this.#release("reasoning"), ...this.#release("text")];
  }

  /** Returns the rest of the text when the answer ends, and the calls at its end; `cut` is one that the end cut off. */
  end(isCut: boolean): {
    readonly shown: readonly TaggedText[];
    readonly calls: readonly WrittenCall[];
    readonly cut?: { readonly tool: string; readonly markup: string };
  } {
    const shown = this.#findCalls(this.#tags.end());
    const end = this.#calls?.end(isCut);
    if (end === undefined) return { shown, calls: [] };
    const { reasoning, text } = end.shown;
    return { ...end, shown: [...shown, { kind: "reasoning", text: reasoning }, { kind: "text", text }] };
  }

  #findCalls(texts: TaggedText[]): TaggedText[] {
    const calls = this.#calls;
    if (calls === undefined) return texts;
    return texts.flatMap(({ kind, text }) => [
      // Visible text ends the reasoning: what was held back of it is not a call.
      ...(kind === "text" && hasVisibleText(text) ? this.#release("reasoning") : []),
      { kind, text: calls.add(kind, text) },
    ]);
  }

  #release(kind: Kind): TaggedText[] {
    return [{ kind, text: this.#calls?.release(kind) ?? "" }];
  }
}

/** Tags around reasoning in the text, for servers that do not extract it. */
const tags: readonly { open: string; close: string }[] = [
  { open: "<think>", close: "</think>" },
  { open: "[THINK]", close: "[/THINK]" },
];

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
