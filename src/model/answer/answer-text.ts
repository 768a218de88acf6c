import { hasVisibleText } from "../../base/text/controls.ts";
import { isHighSurrogate } from "../../base/text/excerpt.ts";
import { type TaggedText, ThinkTags } from "./think-tags.ts";
import type { TextCalls } from "./written-calls/text-calls.ts";
import type { WrittenCall } from "./written-calls/find-calls.ts";

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
