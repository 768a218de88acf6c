import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { isObject, toList, toObject, parseJson, toText, type JsonObject } from "../json.ts";
import { Bell } from "../waiting.ts";

export type Direction = "toAgent" | "fromAgent";

/** One line of the connection. `problem` says why it is not a JSON-RPC message. */
export interface WireEntry {
  readonly order: number;
  /** Milliseconds since the log began. */
  readonly atMs: number;
  readonly direction: Direction;
  readonly line: string;
  readonly message: WireMessage | undefined;
  readonly problem: string | undefined;
  /** Number of messages in the line, if it is an array; each message has an entry. */
  readonly batchOf?: number;
}

export type WireMessage =
  | { kind: "request"; id: WireId; method: string; params: JsonObject; json: JsonObject }
  | { kind: "notification"; method: string; params: JsonObject; json: JsonObject }
  | { kind: "response"; id: WireId; result: unknown; error: JsonObject | undefined; json: JsonObject };

export interface WireUpdate {
  readonly order: number;
  readonly sessionId: string;
  readonly update: SessionUpdate;
}

export type WireId = string | number | null;

/** Number of lines in a failure's report, and their maximum length. */
const excerptLines = 40;
const excerptWidth = 400;

const arrayBegin = "[".charCodeAt(0);

/** All messages of one connection, in both directions and in order. */
export class WireLog {
  readonly entries: WireEntry[] = [];
  /** The session updates among the entries. */
  readonly updates: WireUpdate[] = [];
  readonly bell = new Bell();
  /** True if the process was killed: then missing messages are not faults. */
  cut = false;
  /** Version 2 was agreed on, which has batches. */
  #hasBatches = false;
  readonly #beganAt = performance.now();
  readonly #pending: Record<Direction, Buffer[]> = { toAgent: [], fromAgent: [] };

  /** The time now, in the unit of `atMs`. */
  get nowMs(): number {
    return performance.now() - this.#beganAt;
  }

  /** Accepts bytes as they pass and returns the lines that they complete. */
  receive(direction: Direction, bytes: Uint8Array): WireEntry[] {
    const completed: WireEntry[] = [];
    let start = 0;
    for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, start)) {
      const line = Buffer.concat([...this.#pending[direction], bytes.subarray(start, at)]);
      this.#pending[direction] = [];
      completed.push(...this.#appendLine(direction, line));
      start = at + 1;
    }
    if (start < bytes.length) this.#pending[direction].push(Buffer.from(bytes.subarray(start)));
    return completed;
  }

  /** Records a whole message. */
  record(direction: Direction, json: unknown): WireEntry {
    return this.#append(direction, Buffer.from(JSON.stringify(json)));
  }

  /** The agent's last output without a newline. */
  get unfinished(): string {
    return Buffer.concat(this.#pending.fromAgent).toString();
  }

  /** Creates a new log of the same connection, with only its first request and response. */
  beginning(): WireLog {
    const [request, answer] = this.entries;
    if (request?.message?.kind !== "request" || request.message.method !== "initialize")
      throw new Error("The connection did not begin with initialize.");
    const log = new WireLog();
    for (const { direction, message } of [request, answer].filter((entry) => entry !== undefined))
      log.record(direction, message?.json);
    return log;
  }

  /** The last lines, for the report of a failure. */
  excerpt(): string {
    return this.entries.slice(-excerptLines).map(entryText).join("\n");
  }

  #appendLine(direction: Direction, bytes: Buffer): WireEntry[] {
    const batch = this.#hasBatches && bytes[0] === arrayBegin ? toList(parseJson(bytes.toString())) : [];
    if (batch.length === 0) return [this.#append(direction, bytes)];
    return batch.map((json) => this.#append(direction, Buffer.from(JSON.stringify(json)), batch.length));
  }

  #append(direction: Direction, bytes: Buffer, batchOf?: number): WireEntry {
    const line = bytes.toString();
    const parsed = bytes.equals(Buffer.from(line)) ? parseMessage(line) : "is not UTF-8";
    const entry: WireEntry = {
      order: this.entries.length,
      atMs: this.nowMs,
      direction,
      line,
      message: typeof parsed === "string" ? undefined : parsed,
      problem: typeof parsed === "string" ? parsed : undefined,
      ...(batchOf !== undefined && { batchOf }),
    };
    this.entries.push(entry);
    this.#keepUpdate(entry);
    if (direction === "fromAgent" && entry.message?.kind === "response")
      this.#hasBatches ||= toObject(entry.message.result).protocolVersion === 2;
    this.bell.ring();
    return entry;
  }

  #keepUpdate({ order, direction, message }: WireEntry): void {
    if (direction === "toAgent" || message?.kind !== "notification" || message.method !== "session/update")
      return;
    const { sessionId, update } = message.params;
    if (isSessionUpdate(update)) this.updates.push({ order, sessionId: String(sessionId), update });
  }
}

/** The line's message, or why the line is invalid. */
function parseMessage(line: string): WireMessage | string {
  const json = parseJson(line);
  if (!isObject(json)) return "is not a JSON object";
  if (json.jsonrpc !== "2.0") return 'has no "jsonrpc": "2.0"';
  const method = toText(json.method);
  const params = isObject(json.params) ? json.params : {};
  if (!("id" in json))
    return method ? { kind: "notification", method, params, json } : "has neither an id nor a method";
  const { id } = json;
  if (!isWireId(id)) return "has an id of a wrong type";
  if (method) return { kind: "request", id, method, params, json };
  if ("result" in json === "error" in json) return "is a response without exactly one of result and error";
  if ("error" in json && !isObject(json.error)) return "has an error that is no object";
  const error = isObject(json.error) ? json.error : undefined;
  return { kind: "response", id, result: json.result, error, json };
}

const isWireId = (id: unknown): id is WireId => id === null || typeof id === "string" || Number.isInteger(id);

/** Only checks the tag; the schema checks the rest. */
const isSessionUpdate = (value: unknown): value is SessionUpdate =>
  typeof toObject(value).sessionUpdate === "string";

function entryText({ atMs, direction, line }: WireEntry): string {
  const arrow = direction === "toAgent" ? "→" : "←";
  const shown =
    line.length > excerptWidth ? `${line.slice(0, excerptWidth)}… (${line.length} characters)` : line;
  return `${atMs.toFixed(0).padStart(6)} ${arrow} ${shown}`;
}
