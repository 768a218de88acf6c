import { hasVisibleText } from "../../../base/text/controls.ts";
import { findCutCall, findWrittenCalls, type OfferedTools, type WrittenCall } from "./find-calls.ts";
import { HeldMarkup } from "./held-markup.ts";

type Kind = "text" | "reasoning";

/** Text and calls at the end of an answer that were held back while it streamed. */
export interface AnswerEnd {
  /** Text that was held back and is not a call. */
  readonly shown: Readonly<Record<Kind, string>>;
  readonly calls: readonly WrittenCall[];
  /** A call that was cut off at the end of the output. */
  readonly cut?: { readonly tool: string; readonly markup: string };
}

/** Separates tool calls from the text of an answer while it streams. */
export class TextCalls {
  readonly #tools: OfferedTools;
  readonly #held: Readonly<Record<Kind, HeldMarkup>>;
  readonly #whole: Record<Kind, string> = { text: "", reasoning: "" };
  /** How many characters were shown. */
  readonly #shown: Record<Kind, number> = { text: 0, reasoning: 0 };

  constructor(tools: OfferedTools) {
    this.#tools = tools;
    this.#held = { text: new HeldMarkup(tools.tools), reasoning: new HeldMarkup(tools.tools) };
  }

  /** Returns the text that can be shown now. */
  add(kind: Kind, text: string): string {
    this.#whole[kind] += text;
    return this.#count(kind, this.#held[kind].add(text));
  }

  /** Returns all text of a kind that is held back: it contains no calls. */
  release(kind: Kind): string {
    return this.#count(kind, this.#held[kind].end());
  }

  /**
   * Finds the calls at the end of the answer: in its text, or in the reasoning if there is no text. `isCut` says that the
   * output ended before the answer did.
   */
  end(isCut: boolean): AnswerEnd {
    const kind = hasVisibleText(this.#whole.text) ? "text" : "reasoning";
    const answer = this.#whole[kind];
    const found = findWrittenCalls(answer, this.#tools);
    if (found?.isCertain) {
      const calls = omitStart(found.calls, this.#shown[kind] - found.start);
      return { shown: this.#releaseBefore(kind, found.start), calls };
    }
    const cut = isCut ? findCutCall(answer, this.#tools) : undefined;
    if (cut === undefined) return { shown: this.#releaseBefore(kind, answer.length), calls: [] };
    const { tool, start } = cut;
    return {
      shown: this.#releaseBefore(kind, start),
      calls: [],
      cut: { tool, markup: answer.slice(start) },
    };
  }

  /** Returns the held-back text of a kind; with a position, only the text before it. */
  #releaseBefore(kind: Kind, position: number): Record<Kind, string> {
    const shown = { text: "", reasoning: "" };
    for (const one of ["text", "reasoning"] as const) {
      const from = this.#shown[one];
      const held = this.release(one);
      shown[one] = one === kind ? held.slice(0, Math.max(0, position - from)) : held;
    }
    return shown;
  }

  #count(kind: Kind, shown: string): string {
    this.#shown[kind] += shown.length;
    return shown;
  }
}

/** Omits characters at the start of the markup that were shown already, such as blank lines. */
function omitStart(calls: readonly WrittenCall[], count: number): WrittenCall[] {
  let left = Math.max(0, count);
  return calls.map((call) => {
    const markup = call.markup.slice(left);
    left -= call.markup.length - markup.length;
    return { ...call, markup };
  });
}
