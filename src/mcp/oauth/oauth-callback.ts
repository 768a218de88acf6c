import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { deferred } from "../../base/async.ts";
import { codeOf, messageOf, UserError } from "../../base/errors.ts";

/** Where the browser comes back to. */
export interface CallbackPlace {
  /** `127.0.0.1`, `localhost` or `[::1]`, as it stands in the address. */
  readonly host: string;
  /** 0 for any that is free. */
  readonly port: number;
  readonly path: string;
  /** Whether another port will not do: the authorization server knows this one. */
  readonly isFixed: boolean;
}

/** What the authorization server sent back with the browser. */
export type CallbackAnswer =
  | { outcome: "code"; code: string; issuer?: string | undefined }
  | { outcome: "refused"; error: string; description?: string | undefined };

export interface Callback {
  readonly redirectUrl: string;
  /** The first answer with the right state. Whatever else arrives is turned away and changes nothing. */
  readonly answer: Promise<CallbackAnswer>;
  close(): Promise<void>;
}

const connectionLimit = 16;
/** Milliseconds in which a browser has sent its request. */
const requestTimeoutMs = 5_000;
const headerLimitBytes = 16 * 1024;

/** Waits on this computer's own address for the browser. Throws {@link UserError} where the port is taken. */
export async function listenForCallback(place: CallbackPlace, state: string): Promise<Callback> {
  const answer = deferred<CallbackAnswer>();
  const server = createServer(
    {
      maxHeaderSize: headerLimitBytes,
      headersTimeout: requestTimeoutMs,
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: 1_000,
    },
    (request, response) => {
      const verdict = judge(request, { path: place.path, hosts: hostsOf(server), state });
      say(response, verdict);
      if (verdict.answer) answer.resolve(verdict.answer);
    },
  );
  server.maxConnections = connectionLimit;
  await listen(server, place);
  return {
    redirectUrl: `http://${place.host}:${portOf(server)}${place.path}`,
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
  // Another name that leads here is how a page on the web would reach this server.
  if (!hosts.includes(request.headers.host ?? "")) return { status: 403, text: "This is not the place." };
  const url = URL.parse(request.url ?? "", "http://127.0.0.1");
  if (url?.pathname !== path) return { status: 404, text: "There is nothing here." };
  if (request.method !== "GET") return { status: 405, text: "Only a browser's GET is answered here." };
  const given = url.searchParams.getAll("state");
  if (given.length !== 1 || !isSame(given[0] ?? "", state)) {
    return {
      status: 400,
      text: "This does not belong to the authorization that is under way. Begin it again from Fairlead.",
    };
  }
  return judgeAnswer(url.searchParams);
}

function judgeAnswer(params: URLSearchParams): Verdict {
  const error = params.get("error");
  if (error !== null) {
    const description = params.get("error_description") ?? undefined;
    const text = "Access was not given. You can close this page; Fairlead says what it was told.";
    return { status: 200, text, answer: { outcome: "refused", error, description } };
  }
  const [code, ...more] = params.getAll("code");
  if (!code || more.length > 0) return { status: 400, text: "The answer has no code." };
  const text = "Done. You can close this page and go back to Fairlead.";
  return { status: 200, text, answer: { outcome: "code", code, issuer: params.get("iss") ?? undefined } };
}

/** Nothing of the request is said again, and the page can load or run nothing. */
function say(response: ServerResponse, { status, text }: Verdict): void {
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

/** Takes as long for a wrong state as for a nearly right one. */
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

async function listen(server: Server, place: CallbackPlace): Promise<void> {
  const address = place.host === "[::1]" ? "::1" : "127.0.0.1";
  try {
    await listenAt(server, place.port, address);
  } catch (thrown) {
    if (codeOf(thrown) === "EADDRINUSE" && !place.isFixed) return listenAt(server, 0, address);
    throw new UserError(toWords(thrown, place), { cause: thrown });
  }
}

async function listenAt(server: Server, port: number, address: string): Promise<void> {
  // `once` rejects with the server's error.
  const listening = once(server, "listening");
  server.listen(port, address);
  await listening;
}

function toWords(thrown: unknown, { port }: CallbackPlace): string {
  if (codeOf(thrown) === "EADDRINUSE")
    return `Port ${port}, to which the browser is to return, is used by another program. End that program, or set another port in "oauth" of the server.`;
  return `No address of this computer could be opened for the browser to return to: ${messageOf(thrown)}.`;
}

/** Lets the last page go out, and nothing more come in. */
async function close(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  const cut = setTimeout(() => server.closeAllConnections(), 500);
  await closed;
  clearTimeout(cut);
}
