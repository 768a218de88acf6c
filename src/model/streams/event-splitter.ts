import { parseJson } from "../../base/text/json.ts";
import { isRecord } from "../../base/text/record.ts";
import { invalidResponse, ProviderFailure } from "../failure.ts";

/** Longest single event of a provider, in characters. */
const eventLimit = 64 * 1024 * 1024;

/** How many characters of an answer that is not an event stream are stored. */
const nonEventTextLimit = eventLimit;

/** Splits text into the data of server-sent events. Each character is scanned once, however the text is chunked. */
export class EventSplitter {
  /** Lines that do not belong to an event stream, joined. */
  nonEventText = "";
  #lineParts: string[] = [];
  #length = 0;
  #data: string[] = [];
  #dataLength = 0;
  #isError = false;
  /** Whether the last text ended with a carriage return. A line feed that follows belongs to the same line end. */
  #endsWithReturn = false;
  #hasStarted = false;

  push(chunk: string): string[] {
    const text = this.#normalizeLineEnds(this.#hasStarted ? chunk : chunk.replace(/^\ufeff/, ""));
    this.#hasStarted ||= chunk !== "";
    if (this.#isBetweenEvents && isWholeEvent(text)) return [text.slice("data: ".length, -2)];
    const events: string[] = [];
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      this.#readLine(this.#takeLine(text.slice(start, end)), events);
      start = end + 1;
    }
    this.#buffer(text.slice(start));
    return events;
  }

  get #isBetweenEvents(): boolean {
    return this.#lineParts.length === 0 && this.#data.length === 0 && !this.#isError;
  }

  /** Returns the remaining events when the stream ends, even if the last line or event is not terminated. */
  end(): string[] {
    return this.push("\n\n");
  }

  /** Lines may end with a carriage return, a line feed or both (HTML standard, 9.2.5). */
  #normalizeLineEnds(chunk: string): string {
    if (chunk === "") return "";
    const text = this.#endsWithReturn && chunk.startsWith("\n") ? chunk.slice(1) : chunk;
    this.#endsWithReturn = chunk.endsWith("\r");
    return text.includes("\r") ? text.replaceAll(/\r\n?/g, "\n") : text;
  }

  #buffer(chunk: string): void {
    this.#length += chunk.length;
    if (this.#length > eventLimit) throw tooLong("a line");
    if (chunk !== "") this.#lineParts.push(chunk);
  }

  #takeLine(chunk: string): string {
    this.#buffer(chunk);
    const line = this.#lineParts.length === 1 ? (this.#lineParts[0] ?? "") : this.#lineParts.join("");
    this.#lineParts = [];
    this.#length = 0;
    return line;
  }

  #readLine(line: string, events: string[]): void {
    if (line.startsWith("data:")) this.#appendData(line.slice(line[5] === " " ? 6 : 5));
    else if (line.startsWith("error:")) this.#appendError(line.slice("error:".length));
    else if (errorEvent.test(line)) this.#isError = true;
    else if (!fieldOrComment.test(line)) this.#appendNonEvent(line);
    if (line === "") this.#endEvent(events);
  }

  #appendData(data: string): void {
    this.#data.push(data);
    this.#dataLength += data.length;
    if (this.#dataLength > eventLimit) throw tooLong("an event");
  }

  #appendError(data: string): void {
    this.#isError = true;
    this.#appendData(data);
  }

  #endEvent(events: string[]): void {
    const data = this.#data.length === 1 ? (this.#data[0] ?? "") : this.#data.join("\n");
    if (this.#data.length > 0) events.push(this.#isError ? toErrorChunk(data) : data);
    this.#data = [];
    this.#dataLength = 0;
    this.#isError = false;
  }

  #appendNonEvent(line: string): void {
    const rest = nonEventTextLimit - this.nonEventText.length;
    if (rest > 0) this.nonEventText += `${line}\n`.slice(0, rest);
  }
}

/** Fast path: a single event with one line of data, as most deltas arrive. */
function isWholeEvent(text: string): boolean {
  return text.startsWith("data: ") && text.endsWith("\n\n") && text.indexOf("\n") === text.length - 2;
}

const tooLong = (what: string) =>
  new ProviderFailure(
    invalidResponse(`The provider sent ${what} of more than ${eventLimit} characters.`, false),
  );

/** Converts an `error` event (gateways) or an `error` field (llama.cpp) to an error chunk. */
function toErrorChunk(data: string): string {
  const value = parseJson(data);
  return isRecord(value) && value.error !== undefined && value.error !== null
    ? data
    : JSON.stringify({ error: value ?? data.trim() });
}

const errorEvent = /^event: ?error$/;
const fieldOrComment = /^(?:$|:|(?:event|id|retry)(?:$|:))/;
