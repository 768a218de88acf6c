import type { ClientRequest, IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { destroyOnAbort } from "../base/async.ts";
import { codeOf } from "../base/errors.ts";
import { waitForResponse } from "../base/http-answer.ts";

export interface HttpRequest {
  readonly method?: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  /** In pieces, which are sent as they are. */
  readonly body?: readonly Uint8Array[];
  readonly signal: AbortSignal;
  /** How long a new connection may take to stand, TLS included; ten seconds, as with Node's fetch. */
  readonly connectMs?: number;
}

/** An answer whose body still comes. */
export interface HttpAnswer {
  readonly status: number;
  /** A header's value, or null. */
  header(name: string): string | null;
  /** The body, not compressed; errs where the connection breaks. */
  readonly body: Readable;
  /** Ends the connection without reading on. */
  cut(): void;
}

/** Sends a request. Follows no redirects; rejects where no answer comes, and as soon as the signal aborts. */
export type Send = (url: URL, request: HttpRequest) => Promise<HttpAnswer>;

/** How often a request is sent again because the kept connection that it took was just closed by the server. */
const staleConnectionsLimit = 3;

const defaultConnectMs = 10_000;

/**
 * Node's `http` instead of its `fetch`, which takes 20 ms and 17 MB to load and three times as long for each request;
 * figures are in docs/performance.md.
 */
export const sendHttp: Send = async (url, request) => {
  const { request: open } = await (url.protocol === "https:" ? import("node:https") : import("node:http"));
  for (let attempt = 1; ; attempt++) {
    request.signal.throwIfAborted();
    const { method = "GET", headers, body = [], connectMs = defaultConnectMs } = request;
    // Who asks knows how long to wait: no timer of the connection is set anew by each delta.
    const sent = open(url, { method, headers: { accept: "*/*", ...lengthOf(body), ...headers }, timeout: 0 });
    destroyOnAbort(sent, request.signal);
    limitConnecting(sent, url.protocol === "https:" ? "secureConnect" : "connect", connectMs);
    try {
      for (const piece of body) sent.write(piece);
      return await toAnswer(await waitForResponse(sent.end()));
    } catch (error) {
      request.signal.throwIfAborted();
      if (attempt > staleConnectionsLimit || !isStale(sent, error)) throw error;
    }
  }
};

/** Without it Node would wrap each piece in a length of its own, which some servers do not read. */
function lengthOf(body: readonly Uint8Array[]): Readonly<Record<string, number>> {
  return body.length === 0 ? {} : { "content-length": body.reduce((sum, piece) => sum + piece.length, 0) };
}

function limitConnecting(sent: ClientRequest, connected: "connect" | "secureConnect", limitMs: number): void {
  sent.once("socket", (socket) => {
    if (!socket.connecting) return;
    const error = Object.assign(new Error("The connection does not come to stand."), { code: "ETIMEDOUT" });
    const timer = setTimeout(() => sent.destroy(error), limitMs);
    const stop = () => clearTimeout(timer);
    socket.once(connected, stop);
    sent.once("close", stop);
  });
}

function isStale({ reusedSocket }: ClientRequest, error: unknown): boolean {
  const code = codeOf(error);
  return reusedSocket && (code === "ECONNRESET" || code === "EPIPE");
}

async function toAnswer(message: IncomingMessage): Promise<HttpAnswer> {
  const { statusCode = 0, headers } = message;
  // An abort errs also when nobody reads; whoever does is thrown it.
  message.on("error", () => {});
  return {
    status: statusCode,
    header: (name) => {
      const value = headers[name.toLowerCase()];
      return value === undefined ? null : String(value);
    },
    body: await uncompressed(message, headers["content-encoding"] ?? ""),
    cut: () => message.destroy(),
  };
}

/** No compression is asked for, but some servers do it all the same. */
async function uncompressed(message: IncomingMessage, encoding: string): Promise<Readable> {
  const name = encoding.trim().toLowerCase();
  if (name === "" || name === "identity") return message;
  const { createBrotliDecompress, createUnzip } = await import("node:zlib");
  const { pipeline } = await import("node:stream");
  // What breaks on either side is thrown to whoever reads.
  return pipeline(message, name === "br" ? createBrotliDecompress() : createUnzip(), () => {});
}
