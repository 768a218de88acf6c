import type { ClientRequest, IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { destroyOnAbort } from "../base/async.ts";
import { codeOf } from "../base/errors.ts";
import { waitForResponse } from "../base/http-answer.ts";

export interface HttpRequest {
  readonly method?: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  /** Chunks, sent without copying. */
  readonly body?: readonly Uint8Array[];
  readonly signal: AbortSignal;
  /** Connect timeout including TLS; ten seconds by default, like Node's fetch. */
  readonly connectMs?: number;
}

/** An HTTP response with a streaming body. */
export interface HttpAnswer {
  readonly status: number;
  /** A header's value, or null. */
  header(name: string): string | null;
  /** The decompressed body. Emits an error if the connection breaks. */
  readonly body: Readable;
  /** Closes the connection without reading the rest. */
  cut(): void;
}

/** Sends a request. Follows no redirects; rejects if there is no answer or the signal aborts. */
export type Send = (url: URL, request: HttpRequest) => Promise<HttpAnswer>;

/** Maximum number of retries after the server closed a reused connection. */
const staleRetryLimit = 3;

const defaultConnectMs = 10_000;

/**
 * Sends requests with Node's `http`. Its `fetch` takes 20 ms and 17 MB to load and is three times slower per request; see
 * docs/development/performance.md.
 */
export const sendHttp: Send = async (url, request) => {
  // Loads with the first request. An `import()` in the bundle would copy the module's names for each request.
  const { request: open } =
    url.protocol === "https:"
      ? process.getBuiltinModule("node:https")
      : process.getBuiltinModule("node:http");
  for (let attempt = 1; ; attempt++) {
    request.signal.throwIfAborted();
    const { method = "GET", headers, body = [], connectMs = defaultConnectMs } = request;
    // Callers have their own timeouts; a socket timeout would be reset by each delta.
    const sent = open(url, {
      method,
      headers: { accept: "*/*", ...contentLengthHeader(body), ...headers },
      timeout: 0,
    });
    destroyOnAbort(sent, request.signal);
    limitConnectTime(sent, url.protocol === "https:" ? "secureConnect" : "connect", connectMs);
    try {
      for (const chunk of body) sent.write(chunk);
      return await toAnswer(await waitForResponse(sent.end()));
    } catch (error) {
      request.signal.throwIfAborted();
      if (attempt > staleRetryLimit || !isStaleConnection(sent, error)) throw error;
    }
  }
};

/** Returns the content length. Without it Node uses chunked encoding, which some servers do not support. */
function contentLengthHeader(body: readonly Uint8Array[]): Readonly<Record<string, number>> {
  return body.length === 0 ? {} : { "content-length": body.reduce((sum, piece) => sum + piece.length, 0) };
}

function limitConnectTime(
  sent: ClientRequest,
  connected: "connect" | "secureConnect",
  limitMs: number,
): void {
  sent.once("socket", (socket) => {
    if (!socket.connecting) return;
    const error = Object.assign(new Error("The connection timed out."), { code: "ETIMEDOUT" });
    const timer = setTimeout(() => sent.destroy(error), limitMs);
    const stop = () => clearTimeout(timer);
    socket.once(connected, stop);
    sent.once("close", stop);
  });
}

function isStaleConnection({ reusedSocket }: ClientRequest, error: unknown): boolean {
  const code = codeOf(error);
  return reusedSocket && (code === "ECONNRESET" || code === "EPIPE");
}

async function toAnswer(message: IncomingMessage): Promise<HttpAnswer> {
  const { statusCode = 0, headers } = message;
  // An abort emits an error even without a reader. Readers receive it as a rejection.
  message.on("error", () => {});
  return {
    status: statusCode,
    header: (name) => {
      const value = headers[name.toLowerCase()];
      return value === undefined ? null : String(value);
    },
    body: await decompress(message, headers["content-encoding"] ?? ""),
    cut: () => message.destroy(),
  };
}

/** Decompresses the body. Some servers compress without being asked. */
async function decompress(message: IncomingMessage, encoding: string): Promise<Readable> {
  const name = encoding.trim().toLowerCase();
  if (name === "" || name === "identity") return message;
  const { createBrotliDecompress, createUnzip } = await import("node:zlib");
  const { pipeline } = await import("node:stream");
  // Errors of both streams reach the reader.
  return pipeline(message, name === "br" ? createBrotliDecompress() : createUnzip(), () => {});
}
