import type { Readable } from "node:stream";
import type { AnyMessage } from "@agentclientprotocol/sdk/unstable";
import { isRecord } from "../../base/text/record.ts";

/** Lines may contain base64 images. Longer lines are skipped and answered with an error. */
const lineLimitBytes = 256 * 1024 * 1024;

const newline = 0x0a;
const byteOrderMark = "\uFEFF";

type MessageId = string | number | null;

export interface InboxHandlers {
  message(message: AnyMessage): void;
  /** Called for an invalid line, with the error to send. The id is null if unknown. */
  invalid(id: MessageId, code: number, reason: string): void;
  /** Called for a non-empty array; its entries are not validated. */
  batch(entries: readonly unknown[]): void;
  end(): void;
}

/** Reads newline-delimited JSON. Scans each byte once, also if lines span chunks. */
export function readMessages(input: Readable, handlers: InboxHandlers): void {
  const line = new LineBuffer();
  input.on("data", (chunk: Buffer) => {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      line.add(chunk.subarray(start, end));
      handleLine(line, handlers);
      start = end + 1;
    }
    line.add(chunk.subarray(start));
  });
  input.on("end", () => {
    handleLine(line, handlers);
    handlers.end();
  });
  input.on("error", () => handlers.end());
}

function handleLine(line: LineBuffer, handlers: InboxHandlers): void {
  if (line.isTooLong) {
    line.clear();
    handlers.invalid(null, -32600, `A message may have at most ${lineLimitBytes} bytes.`);
    return;
  }
  const text = line.take().trim();
  if (text === "" || text === byteOrderMark) return;
  const parsed = parse(text.startsWith(byteOrderMark) ? text.slice(1) : text);
  if (parsed === undefined) handlers.invalid(null, -32700, "Parse error: the line is not valid JSON.");
  else if (Array.isArray(parsed.value)) handleArray(parsed.value, handlers);
  else if (!isMessage(parsed.value)) handlers.invalid(getId(parsed.value), -32600, notAMessageError);
  else handlers.message(parsed.value);
}

function handleArray(entries: readonly unknown[], handlers: InboxHandlers): void {
  if (entries.length === 0) handlers.invalid(null, -32600, "Invalid request: the array is empty.");
  else handlers.batch(entries);
}

export const notAMessageError = "Invalid request: a message is a JSON-RPC 2.0 object.";

function parse(text: string): { value: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return { value: Array.isArray(value) ? value.map(removeNullField) : removeNullField(value) };
  } catch {
    return undefined;
  }
}

/** Removes a null `result` or `error`, which some clients send along with the other one. */
function removeNullField(value: unknown): unknown {
  if (!isRecord(value) || !("result" in value) || !("error" in value)) return value;
  const { result, error, ...rest } = value;
  if (error === null) return { ...rest, result };
  return result === null ? { ...rest, error } : value;
}

/** Whether this is a request, a notification or a response. Ids and errors are validated where they are used. */
export function isMessage(value: unknown): value is AnyMessage {
  if (!isRecord(value) || value["jsonrpc"] !== "2.0") return false;
  if ("method" in value) return typeof value["method"] === "string";
  return "id" in value || "result" in value || "error" in value;
}

export function getId(value: unknown): MessageId {
  if (typeof value !== "object" || value === null || !("id" in value)) return null;
  const { id } = value;
  return typeof id === "string" || (typeof id === "number" && Number.isInteger(id)) ? id : null;
}

class LineBuffer {
  #chunks: Buffer[] = [];
  #bytes = 0;

  get isTooLong(): boolean {
    return this.#bytes > lineLimitBytes;
  }

  add(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.#bytes += chunk.length;
    if (this.isTooLong) this.#chunks = [];
    else this.#chunks.push(chunk);
  }

  take(): string {
    const text =
      this.#chunks.length === 1
        ? (this.#chunks[0] ?? "").toString()
        : Buffer.concat(this.#chunks).toString("utf8");
    this.clear();
    return text;
  }

  clear(): void {
    this.#chunks = [];
    this.#bytes = 0;
  }
}
