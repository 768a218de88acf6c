import type { AnyMessage } from "@agentclientprotocol/sdk/unstable";
import { getId, isMessage, notAMessageError } from "./inbox.ts";

/** Maximum number of messages in one batch. */
export const batchLimit = 100;

type RequestId = string | number;

/** The responses of one batch, sent when all are complete. */
interface Batch {
  readonly waitsFor: Set<RequestId>;
  readonly answers: AnyMessage[];
}

/** JSON-RPC batches: the responses to one array of messages are sent as one array, in order of completion. */
export class Batches {
  readonly #open = new Map<RequestId, Batch>();

  /** Opens a batch. `answers` are responses known at once, returned if the batch has no requests. */
  begin(requests: readonly RequestId[], answers: readonly AnyMessage[]): AnyMessage[] {
    const batch = { waitsFor: new Set(requests), answers: [...answers] };
    for (const id of requests) this.#open.set(id, batch);
    return requests.length === 0 ? batch.answers : [];
  }

  /** Whether the response to this request belongs to an open batch. */
  has(id: RequestId | null): id is RequestId {
    return id !== null && this.#open.has(id);
  }

  /** Adds a response. Returns all responses of the batch after the last one, otherwise none. */
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
  /** Ids of the messages that are requests. */
  requests: RequestId[];
  /** Error responses to invalid entries. */
  errors: AnyMessage[];
}

/** Validates the entries of a batch. `unanswered` are the ids in use, which a new request must not repeat. */
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
      sorted.errors.push(createError(null, "Invalid request: id must be a string or an integer."));
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

/** Whether this is a request, a notification or a response. */
function isComplete(message: AnyMessage): boolean {
  return "method" in message || ("id" in message && ("result" in message || "error" in message));
}

function isRequest(message: AnyMessage): boolean {
  return "method" in message && "id" in message;
}

function createError(id: RequestId | null, message: string): AnyMessage {
  return { jsonrpc: "2.0", id, error: { code: -32600, message } };
}
