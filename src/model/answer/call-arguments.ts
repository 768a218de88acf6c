import { fromJson, nestsDeeper } from "../../base/text/json.ts";
import { isRecord } from "../../base/text/record.ts";
import type { FinishReason } from "../../message/message.ts";

/** Placeholder tool name for calls without one. */
export const unnamedTool = "unnamed";

/**
 * Collects the streamed arguments of a call and detects when they are complete. A complete JSON object cannot be the
 * prefix of a longer one, so the call may start before the stream ends. Each character is scanned once.
 */
export class CallArguments {
  #texts: string[] = [];
  #depth = 0;
  #inString = false;
  #escaped = false;
  #hasObject = false;
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
    this.#texts.push(text.slice(from));
  }

  /** Whether the braces are balanced. False for an empty object: some servers send one before the real arguments. */
  get isWhole(): boolean {
    return this.#closed && !isEmptyObject(this.raw);
  }

  get isEmptyObject(): boolean {
    return this.#closed && isEmptyObject(this.raw);
  }

  get raw(): string {
    if (this.#texts.length > 1) this.#texts = [this.#texts.join("")];
    return this.#texts[0] ?? "";
  }

  #reset(): void {
    this.#texts = [];
    this.#hasObject = false;
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
    if (code === openBrace) this.#hasObject = true;
    this.#depth++;
  }

  #close(): void {
    this.#depth--;
    if (this.#depth === 0 && this.#hasObject) this.#closed = true;
  }
}

/** Parsed arguments, or a problem that completes the sentence "The arguments are …". */
export type ParsedArguments =
  | { input: unknown; problem?: undefined }
  | { input?: undefined; problem: string };

/** Maximum nesting of lists and objects. Deeper ones could be parsed, but neither stored nor shown. */
const nestingLimit = 200;

/** Parses the arguments of a call. Empty text counts as an empty object: some servers send it for tools without parameters. */
export function parseArguments(raw: string): ParsedArguments {
  if (raw.trim() === "") return { input: {} };
  if (nestsDeeper(nestingLimit, raw))
    return { problem: `too deep: they nest more than ${nestingLimit} levels` };
  try {
    const input = fromJson(raw);
    if (isRecord(input)) return { input };
    return { problem: "no JSON object" };
  } catch (thrown) {
    const cut = describeCut(raw);
    if (cut !== undefined) return { problem: `not valid JSON: they end too early. ${cut}` };
    const reason = thrown instanceof Error ? thrown.message.slice(0, 200) : "";
    return { problem: `not valid JSON: ${reason}${quotePlace(raw, reason)}` };
  }
}

/** Length of arguments above which the model is advised to send less at once, in characters. */
const longArguments = 2_000;
/** Characters of a parameter's name that are quoted. */
const quotedKey = 60;

/** Returns the text for the model about a call that the end of the answer cut off. */
export function describeCutOff(raw: string, reason: FinishReason): string {
  const why = reason === "length" ? "the limit of output tokens was reached" : `the answer ended (${reason})`;
  const cut = describeCut(raw) ?? `Arrived: ${raw.length} characters`;
  return `The arguments were cut off because ${why}. Nothing was run. ${cut}. Call it again.`;
}

/** Describes how much of cut arguments arrived; undefined if their brackets and texts are closed. */
function describeCut(raw: string): string | undefined {
  const { isClosed, key } = findEnd(raw);
  if (isClosed) return undefined;
  const within = key === undefined ? "" : `, cut within \`${key.slice(0, quotedKey).toWellFormed()}\``;
  const arrived = `Arrived: ${raw.length.toLocaleString("en-US")} characters${within}`;
  const advice = "Send less at once: write the first part, then add the rest with further calls";
  return raw.length < longArguments ? arrived : `${arrived}. ${advice}`;
}

/** Finds out whether everything is closed at the end of the text, and the parameter whose value is open. */
function findEnd(raw: string): { isClosed: boolean; key: string | undefined } {
  let depth = 0;
  let key: string | undefined;
  let text: string | undefined;
  for (const [token] of raw.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|"/gs)) {
    if (token === '"') return { isClosed: false, key };
    if (token === "{" || token === "[") depth++;
    if (token === "}" || token === "]") depth--;
    if (depth === 1 && token === ":") key = text?.slice(1, -1);
    if (depth === 1 && token === ",") key = undefined;
    text = token.startsWith('"') ? token : undefined;
  }
  return { isClosed: depth <= 0, key };
}

/** Characters quoted around a mistake. */
const quotedLength = 80;

/** Quotes the text around the position that the parser names; the end of the text if it names none. */
function quotePlace(raw: string, reason: string): string {
  const position = Number(/position (\d+)/.exec(reason)?.[1] ?? raw.length);
  const start = Math.max(0, Math.min(position, raw.length) - quotedLength / 2);
  return ` (near: ${raw.slice(start, start + quotedLength).toWellFormed()})`;
}

const isEmptyObject = (raw: string): boolean => raw.length < 64 && /^\s*\{\s*\}\s*$/.test(raw);

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
