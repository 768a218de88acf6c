import { parseJson } from "../../base/text/json.ts";
import { isRecord } from "../../base/text/record.ts";
import { invalidResponse, ProviderFailure } from "../failure.ts";

/** Longest single event of a provider, in characters. */
const eventLimit = 64 * 1024 * 1024;

/** So much is kept of an answer that is no event stream, in characters. */
const oddTextLimit = 1024 * 1024;

/** Cuts text into the data of server-sent events. Each character is looked at once, however it arrives. */
export class EventSplitter {
  /** Lines that are nothing of an event stream, joined. */
  oddText = "";
  #pieces: string[] = [];
  #length = 0;
  #data: string[] = [];
  #dataLength = 0;
  #isError = false;
  /** A line feed that comes now is the other half of a line's end. */
  #endsWithReturn = false;
  #hasBegun = false;

  push(piece: string): string[] {
    const text = this.#withLineFeeds(this.#hasBegun ? piece : piece.replace(/^\ufeff/, ""));
    this.#hasBegun ||= piece !== "";
    if (this.#isBetweenEvents && isWholeEvent(text)) return [text.slice("data: ".length, -2)];
    const events: string[] = [];
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      this.#line(this.#join(text.slice(start, end)), events);
      start = end + 1;
    }
    this.#keep(text.slice(start));
    return events;
  }

  get #isBetweenEvents(): boolean {
    return this.#pieces.length === 0 && this.#data.length === 0 && !this.#isError;
  }

  /** What is left when the stream ends, even where its last line or event was not closed. */
  end(): string[] {
    return this.push("\n\n");
  }

  /** Lines may end with a carriage return, a line feed or both (HTML standard, 9.2.5). */
  #withLineFeeds(piece: string): string {
    if (piece === "") return "";
    const text = this.#endsWithReturn && piece.startsWith("\n") ? piece.slice(1) : piece;
    this.#endsWithReturn = piece.endsWith("\r");
    return text.includes("\r") ? text.replaceAll(/\r\n?/g, "\n") : text;
  }

  #keep(piece: string): void {
    this.#length += piece.length;
    if (this.#length > eventLimit) throw tooLong("a line");
    if (piece !== "") this.#pieces.push(piece);
  }

  #join(piece: string): string {
    this.#keep(piece);
    const line = this.#pieces.length === 1 ? (this.#pieces[0] ?? "") : this.#pieces.join("");
    this.#pieces = [];
    this.#length = 0;
    return line;
  }

  #line(line: string, events: string[]): void {
    if (line.startsWith("data:")) this.#keepData(line.slice(line[5] === " " ? 6 : 5));
    else if (line.startsWith("error:")) this.#keepError(line.slice("error:".length));
    else if (errorEvent.test(line)) this.#isError = true;
    else if (!fieldOrComment.test(line)) this.#keepOdd(line);
    if (line === "") this.#endEvent(events);
  }

  #keepData(data: string): void {
    this.#data.push(data);
    this.#dataLength += data.length;
    if (this.#dataLength > eventLimit) throw tooLong("an event");
  }

  #keepError(data: string): void {
    this.#isError = true;
    this.#keepData(data);
  }

  #endEvent(events: string[]): void {
    const data = this.#data.length === 1 ? (this.#data[0] ?? "") : this.#data.join("\n");
    if (this.#data.length > 0) events.push(this.#isError ? toErrorChunk(data) : data);
    this.#data = [];
    this.#dataLength = 0;
    this.#isError = false;
  }

  #keepOdd(line: string): void {
    const rest = oddTextLimit - this.oddText.length;
    if (rest > 0) this.oddText += `${line}\n`.slice(0, rest);
  }
}

/** One event of one line of data, as it comes where a model's words come one by one. */
function isWholeEvent(text: string): boolean {
  return text.startsWith("data: ") && text.endsWith("\n\n") && text.indexOf("\n") === text.length - 2;
}

const tooLong = (what: string) =>
  new ProviderFailure(
    invalidResponse(`The provider sent ${what} of more than ${eventLimit} characters.`, false),
  );

/** Of an event of the type `error` (gateways), or in the field `error` (llama.cpp): the same as chunks have it. */
function toErrorChunk(data: string): string {
  const value = parseJson(data);
  return isRecord(value) && value.error !== undefined && value.error !== null
    ? data
    : JSON.stringify({ error: value ?? data.trim() });
}

const errorEvent = /^event: ?error$/;
const fieldOrComment = /^(?:$|:|(?:event|id|retry)(?:$|:))/;
