import type { FetchLike } from "@modelcontextprotocol/client";
import { messageLimitBytes } from "./message-lines.ts";
import { RateLimiter } from "../../base/rate-limiter.ts";

/** A server's message exceeds the limit. Retrying does not help. */
export class MessageTooLongError extends Error {
  override readonly name = "MessageTooLong";
  constructor() {
    super(`it sent more than ${messageLimitBytes / 1024 / 1024} MiB in one message`);
  }
}

const newline = 0x0a;

/**
 * Limits the size of each message: of a body, or of an event in a stream. Longer messages end the body with an error.
 * Respects backpressure.
 */
export function limitResponseSize(onTooLong: (error: MessageTooLongError) => void): FetchLike {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (response.body === null) return response;
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
    const body = response.body.pipeThrough(getLimit(isStream, onTooLong, init?.signal));
    const { status, statusText, headers } = response;
    return withAddress(new Response(body, { status, statusText, headers }), response);
  };
}

/** Copies the URL of the original response, which a constructed one lacks. */
function withAddress(made: Response, { url, redirected, type }: Response): Response {
  for (const [name, value] of Object.entries({ url, redirected, type }))
    Object.defineProperty(made, name, { value });
  return made;
}

function getLimit(
  isStream: boolean,
  onTooLong: (error: MessageTooLongError) => void,
  signal: AbortSignal | null | undefined,
) {
  const pace = new RateLimiter();
  let bytes = 0;
  let events = 0;
  let isLineEmpty = true;
  const count = (chunk: Uint8Array) => {
    if (!isStream) {
      bytes += chunk.length;
      return;
    }
    events = 0;
    // An empty line ends an event, so the count restarts after the last one.
    for (let start = 0; start < chunk.length;) {
      const end = chunk.indexOf(newline, start);
      const line = end === -1 ? chunk.length : end;
      const isEmpty = line === start || (line === start + 1 && chunk[start] === 0x0d);
      const isEnd = end !== -1 && isEmpty && isLineEmpty;
      if (isEnd) events++;
      bytes = isEnd ? 0 : bytes + line - start;
      isLineEmpty = end !== -1 || (isLineEmpty && isEmpty);
      start = line + 1;
    }
  };
  return new TransformStream<Uint8Array, Uint8Array>({
    async transform(chunk, controller) {
      count(chunk);
      if (bytes <= messageLimitBytes) {
        controller.enqueue(chunk);
        return isStream ? pace.count(events, chunk.length, signal) : undefined;
      }
      const error = new MessageTooLongError();
      onTooLong(error);
      return controller.error(error);
    },
  });
}
