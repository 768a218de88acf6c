import { fromJson, nestsDeeper } from "../../base/text/json.ts";
import { isRecord } from "../../base/text/record.ts";

/** Placeholder name of a call that the provider never named, so that the call is answered and not lost. */
export const unnamedTool = "unnamed";

/**
 * Watches the arguments of a call arrive and says when they are whole. A complete JSON object cannot be the
 * beginning of a longer one, so the call may start before the stream ends. Each character is looked at once.
 */
export class CallArguments {
  #pieces: string[] = [];
  #depth = 0;
  #inString = false;
  #escaped = false;
  #begun = false;
  #closed = false;

  add(text: string): void {
    if (this.isEmptyObject && text.trim() !== "") this.#reset();
    let from = 0;
    for (let index = 0; index < text.length && !this.#closed; index++) {
      this.#read(text.charCodeAt(index));
      const end = index + 1;
      if (!this.#closed || text.slice(end).trim() === "" || !isEmptyObject(this.raw + text.slice(from, end)))
        continue;
      this.#reset();
      from = end;
    }
    this.#pieces.push(text.slice(from));
  }

  /** Whether the braces are closed. An empty object does not count: some servers send one before the real arguments. */
  get isWhole(): boolean {
    return this.#closed && !isEmptyObject(this.raw);
  }

  get isEmptyObject(): boolean {
    return this.#closed && isEmptyObject(this.raw);
  }

  get raw(): string {
    if (this.#pieces.length > 1) this.#pieces = [this.#pieces.join("")];
    return this.#pieces[0] ?? "";
  }

  #reset(): void {
    this.#pieces = [];
    this.#begun = false;
    this.#closed = false;
  }

  #read(code: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (this.#inString) this.#readInString(code);
    else if (code === quote) this.#inString = true;
    else if (code === openBrace || code === openBracket) this.#open(code);
    else if (code === closeBrace || code === closeBracket) this.#close();
  }

  #readInString(code: number): void {
    if (code === backslash) this.#escaped = true;
    else if (code === quote) this.#inString = false;
  }

  #open(code: number): void {
    if (code === openBrace) this.#begun = true;
    this.#depth++;
  }

  #close(): void {
    this.#depth--;
    if (this.#depth === 0 && this.#begun) this.#closed = true;
  }
}

/** The problem is what the arguments are instead. */
export type ParsedArguments =
  | { input: unknown; problem?: undefined }
  | { input?: undefined; problem: string };

/** Levels of lists and objects in one another; deeper ones could be parsed, but neither stored nor shown. */
const nestingLimit = 200;

/** No arguments at all are an empty object: that is how some servers call tools without parameters. */
export function parseArguments(raw: string): ParsedArguments {
  if (raw.trim() === "") return { input: {} };
  if (nestsDeeper(nestingLimit, raw))
    return { problem: `too deep: they nest more than ${nestingLimit} levels` };
  try {
    const input = fromJson(raw);
    if (isRecord(input)) return { input };
    return { problem: "no JSON object" };
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message.slice(0, 200) : "";
    return { problem: `not valid JSON: ${reason}` };
  }
}

const isEmptyObject = (raw: string): boolean => raw.length < 64 && /^\s*\{\s*\}\s*$/.test(raw);

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
