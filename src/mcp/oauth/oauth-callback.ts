import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { deferred } from "../../base/async.ts";
import { codeOf, messageOf, UserError } from "../../base/errors.ts";

/** Address of the OAuth redirect. */
export interface CallbackAddress {
  /** `127.0.0.1`, `localhost` or `[::1]`, as in the redirect URI. */
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly path: string;
  /** Whether the port is fixed because it is registered at the authorization server. */
  readonly isFixed: boolean;
}

/** The parameters of the redirect. */
export type CallbackAnswer =
  | { outcome: "code"; code: string; issuer?: string | undefined }
  | { outcome: "refused"; error: string; description?: string | undefined };

export interface Callback {
  readonly redirectUrl: string;
  /** Resolves with the first redirect with the right state. Other requests are rejected. */
  readonly answer: Promise<CallbackAnswer>;
  close(): Promise<void>;
}

const connectionLimit = 16;
/** Timeout of a browser's request, in milliseconds. */
const requestTimeoutMs = 5_000;
const headerLimitBytes = 16 * 1024;

/** Listens on a loopback address for the browser. Throws {@link UserError} if the port is in use. */
export async function listenForCallback(callback: CallbackAddress, state: string): Promise<Callback> {
  const answer = deferred<CallbackAnswer>();
  const server = createServer(
    {
      maxHeaderSize: headerLimitBytes,
      headersTimeout: requestTimeoutMs,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: 1_000,
    },
    (request, response) => {
      const verdict = judge(request, { path: callback.path, hosts: hostsOf(server), state });
      respond(response, verdict);
      if (verdict.answer) answer.resolve(verdict.answer);
    },
  );
  server.maxConnections = connectionLimit;
  await listen(server, callback);
  return {
    redirectUrl: `http://${callback.host}:${portOf(server)}${callback.path}`,
    answer: answer.promise,
    close: () => close(server),
  };
}

interface Verdict {
  status: number;
  text: string;
  answer?: CallbackAnswer;
}

interface Expected {
  path: string;
  hosts: readonly string[];
  state: string;
}

function judge(request: IncomingMessage, { path, hosts, state }: Expected): Verdict {
  // Rejects other host names, which web pages could use to reach this server (DNS rebinding).
  if (!hosts.includes(request.headers.host ?? "")) return { status: 403, text: "Wrong host." };
  const url = URL.parse(request.url ?? "", "http://127.0.0.1");
  if (url?.pathname !== path) return { status: 404, text: "Not found." };
  if (request.method !== "GET") return { status: 405, text: "Only a browser's GET is answered here." };
  const given = url.searchParams.getAll("state");
  if (given.length !== 1 || !isSame(given[0] ?? "", state)) {
    return {
      status: 400,
      text: "This page does not belong to the current authorization. Start again from Fairlead.",
    };
  }
  return judgeAnswer(url.searchParams);
}

function judgeAnswer(params: URLSearchParams): Verdict {
  const error = params.get("error");
  if (error !== null) {
    const description = params.get("error_description") ?? undefined;
    const text = "Access was denied. You can close this page; Fairlead shows the reason.";
    return { status: 200, text, answer: { outcome: "refused", error, description } };
  }
  const [code, ...more] = params.getAll("code");
  if (!code || more.length > 0) return { status: 400, text: "The answer has no code." };
  const text = "Done. You can close this page and go back to Fairlead.";
  return { status: 200, text, answer: { outcome: "code", code, issuer: params.get("iss") ?? undefined } };
}

/** Sends a page that does not echo the request and cannot load or run anything. */
function respond(response: ServerResponse, { status, text }: Verdict): void {
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    connection: "close",
  });
  response.end(`<!doctype html><meta charset="utf-8"><title>Fairlead</title><p>${text}</p>\n`);
}

/** Compares states in constant time. */
function isSame(given: string, wanted: string): boolean {
  const [one, other] = [given, wanted].map((text) => createHash("sha256").update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}

function hostsOf(server: Server): string[] {
  const port = portOf(server);
  return [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`];
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function listen(server: Server, callback: CallbackAddress): Promise<void> {
  const address = callback.host === "[::1]" ? "::1" : "127.0.0.1";
  try {
    await listenAt(server, callback.port, address);
  } catch (thrown) {
    if (codeOf(thrown) === "EADDRINUSE" && !callback.isFixed) return listenAt(server, 0, address);
    throw new UserError(toWords(thrown, callback), { cause: thrown });
  }
}

async function listenAt(server: Server, port: number, address: string): Promise<void> {
  // `once` rejects with the server's error.
  const listening = once(server, "listening");
  server.listen(port, address);
  await listening;
}

function toWords(thrown: unknown, { port }: CallbackAddress): string {
  if (codeOf(thrown) === "EADDRINUSE")
    return `Port ${port}, to which the browser must return, is in use by another program. End that program, or set another port in "oauth" of the server.`;
  return `No address of this computer could be opened for the browser to return to: ${messageOf(thrown)}.`;
}

/** Finishes the last response and accepts no more requests. */
async function close(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  const cut = setTimeout(() => server.closeAllConnections(), 500);
  await closed;
  clearTimeout(cut);
}
