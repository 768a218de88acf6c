import type { AnyMessage } from "@agentclientprotocol/sdk/unstable";
import { getId, isMessage, notAMessageError } from "./inbox.ts";

/** Messages of one batch; whoever sends more is told to send several. */
export const batchLimit = 100;

type RequestId = string | number;

/** What one batch is answered with, when all of it is there. */
interface Batch {
  readonly waitsFor: Set<RequestId>;
  readonly answers: AnyMessage[];
}

/** Batches of JSON-RPC: the answers to one array of messages go out as one array, in the order in which they came. */
export class Batches {
  readonly #open = new Map<RequestId, Batch>();

  /** `answers` are what is known at once. Returns them when nothing else is to come. */
  begin(requests: readonly RequestId[], answers: readonly AnyMessage[]): AnyMessage[] {
    const batch = { waitsFor: new Set(requests), answers: [...answers] };
    for (const id of requests) this.#open.set(id, batch);
    return requests.length === 0 ? batch.answers : [];
  }

  /** Whether the answer to this request waits for those of a batch. */
  has(id: RequestId | null): id is RequestId {
    return id !== null && this.#open.has(id);
  }

  /** Takes an answer. Returns those of its batch when it was the last one. */
  collect(id: RequestId, answer: AnyMessage): AnyMessage[] {
    const batch = this.#open.get(id);
    this.#open.delete(id);
    if (batch === undefined) return [answer];
    batch.answers.push(answer);
    batch.waitsFor.delete(id);
    return batch.waitsFor.size === 0 ? batch.answers : [];
  }
}

export interface SortedBatch {
  messages: AnyMessage[];
  /** Of those of the messages that must be answered. */
  requests: RequestId[];
  /** The answers to whatever is no message. */
  errors: AnyMessage[];
}

/** `unanswered` are the ids that are in use, which no other request may have. */
export function sortBatch(
  entries: readonly unknown[],
  unanswered: ReadonlySet<string | number>,
): SortedBatch {
  const sorted: SortedBatch = { messages: [], requests: [], errors: [] };
  const used = new Set(unanswered);
  for (const entry of entries) {
    const id = getId(entry);
    if (!isMessage(entry) || !isComplete(entry)) sorted.errors.push(createError(id, notAMessageError));
    else if (!isRequest(entry)) sorted.messages.push(entry);
    else if (id === null)
      sorted.errors.push(createError(null, "Invalid request: an id is a text or a whole number."));
    else if (used.has(id))
      sorted.errors.push(createError(null, `Invalid request: the id ${JSON.stringify(id)} is in use.`));
    else {
      used.add(id);
      sorted.requests.push(id);
      sorted.messages.push(entry);
    }
  }
  return sorted;
}

/** A call, or the answer to one. */
function isComplete(message: AnyMessage): boolean {
  return "method" in message || ("id" in message && ("result" in message || "error" in message));
}

function isRequest(message: AnyMessage): boolean {
  return "method" in message && "id" in message;
}

function createError(id: RequestId | null, message: string): AnyMessage {
  return { jsonrpc: "2.0", id, error: { code: -32600, message } };
}
