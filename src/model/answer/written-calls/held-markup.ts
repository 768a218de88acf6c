import type { ToolSpec } from "../../model.ts";

/** Texts that begin a tool call, anywhere in an answer. */
const anywhere = [
  "<tool_call",
  "<tool_code",
  "<function",
  "<invoke",
  `<${["antml", "invoke"].join(":")}`,
  "<minimax:",
  "<longcat_tool_call",
  "<seed:",
  "<start_function_call",
  "<TOOLCALL",
  "<|",
  "<\uFF5C",
  "<\u2016",
  "< |",
  "[TOOL_CALLS]",
  "[TOOL_REQUEST]",
  "[Calling tool:",
];
/** Texts that begin a tool call at the start of a line. */
const atLineStart = [
  "call:",
  "declaration:default_api",
  "default_api:",
  "functools",
  "Action: ```",
  "Action:\n```",
  "commentary to=",
  "analysis to=",
  "assistantcommentary to=",
  "assistant<|",
  "function<",
  "```tool_code",
];

/** A line that may become a call in JSON or Python. */
const undecidedBracket = /^(?:\{\s*(?:["']\w*)?|\[\s*(?:\w[\w.-]*(?:\]\s*)?)?)$/;
const openBracket =
  /^(?:\{\s*["'](?:name|type|function|tool|tool_\w+|id|arguments|parameters)["']|\[\s*(?:\{|\w[\w.]*\()|\[[\w.-]+\]\s*\{)/;
const undecidedFence = /^(?:`{1,2}|`{3,}[^\n]*\n?\s*)$/;
const fence = /^`{3,}[^\n]*\n\s*/;
/** Text after a closing bracket or code fence: there was no call. */
const continuation = /(?:^|\n)(?:`{3,}|[}\]])[ \t]*\n\s*[\p{L}\d*#>|-]/u;
/** How many characters are searched for {@link continuation} before a new piece. */
const overlap = 200;

/**
 * Whether a call may begin, and how long that is uncertain: no; until more text arrives; unless text follows;
 * until the answer ends.
 */
type Opening = "none" | "undecided" | "loose" | "marked";

/**
 * Holds back the text of an answer from the first place where a tool call may begin, so that its markup is not shown.
 * Text that turns out to be no call is released.
 */
export class HeldMarkup {
  readonly #lineStarts: readonly string[];
  #pieces: string[] = [];
  #opening: Opening = "none";
  /** The end of the text that is held back. */
  #tail = "";
  /** Whether nothing but blanks has been released since the last line break. */
  #isLineStart = true;

  constructor(tools: readonly ToolSpec[]) {
    this.#lineStarts = [...atLineStart, ...tools.flatMap(({ name }) => [`<${name}>`, `${name}<arg_key>`])];
  }

  /** Returns the text that can be shown now. */
  add(text: string): string {
    this.#pieces.push(text);
    if (this.#opening === "marked") return "";
    if (this.#opening === "loose") {
      this.#tail = this.#tail.slice(-overlap) + text;
      if (!continuation.test(this.#tail)) return "";
    }
    return this.#scan();
  }

  /** Returns all text that is held back. */
  end(): string {
    const held = this.#pieces.join("");
    this.#pieces = [];
    this.#opening = "none";
    return this.#release(held);
  }

  #scan(): string {
    const text = this.#pieces.join("");
    const { at, opening } = this.#findOpening(text);
    this.#opening = opening;
    this.#tail = text.slice(at);
    this.#pieces = this.#tail === "" ? [] : [this.#tail];
    return this.#release(text.slice(0, at));
  }

  #release(text: string): string {
    const line = text.slice(text.lastIndexOf("\n") + 1);
    this.#isLineStart = line.trim() === "" && (this.#isLineStart || text.includes("\n"));
    return text;
  }

  #findOpening(text: string): { at: number; opening: Opening } {
    for (const match of text.matchAll(/[<[]|^[ \t]*(?=[^\s<[])/gm)) {
      const isSign = /[<[]/.test(match[0]);
      const at = match.index + (isSign ? 0 : match[0].length);
      const line = text.lastIndexOf("\n", at - 1);
      const isLineStart = text.slice(line + 1, at).trim() === "" && (line !== -1 || this.#isLineStart);
      const opening = this.#classify(text.slice(at), isLineStart);
      if (opening !== "none") return { at, opening };
    }
    return { at: text.length, opening: "none" };
  }

  #classify(rest: string, isLineStart: boolean): Opening {
    const openings = isLineStart ? [...anywhere, ...this.#lineStarts] : anywhere;
    if (openings.some((opening) => rest.startsWith(opening))) return "marked";
    if (openings.some((opening) => opening.startsWith(rest))) return "undecided";
    if (!isLineStart) return "none";
    if (undecidedFence.test(rest) || undecidedBracket.test(rest)) return "undecided";
    const content = rest.replace(fence, "");
    const isOpen =
      openBracket.test(content) || (content.length < rest.length && this.#classify(content, true) !== "none");
    return isOpen && !continuation.test(rest) ? "loose" : "none";
  }
}
