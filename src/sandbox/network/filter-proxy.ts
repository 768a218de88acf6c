import { randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, request as sendRequest, type ServerResponse } from "node:http";
import { connect, type LookupFunction, type Server, type Socket } from "node:net";
import { type Duplex, pipeline } from "node:stream";
import { formatTarget, parseTarget, type Target } from "./host-pattern.ts";
import { createForeignLookup, createOwnAddressCheck } from "./own-addresses.ts";

/** Commands whose connections are accepted; the oldest is forgotten first. */
const clientLimit = 1_000;
/** Blocked targets that are remembered per command. */
const blockedLimit = 20;
const connectTimeoutMs = 30_000;

const user = "fairlead";
/** Headers between a client and its proxy. */
const proxyHeaders: ReadonlySet<string> = new Set(["proxy-authorization", "proxy-connection", "connection"]);

/** The connections of one command. */
export interface Connections {
  /** `user:password` for the address of the proxy. */
  readonly credentials: string;
  /** Targets that were blocked since the start, formatted, each once. */
  readonly blocked: ReadonlySet<string>;
}

interface Client {
  readonly connections: Connections;
  readonly blocked: Set<string>;
  mayConnect(target: string): boolean;
}

type Refusal = { readonly status: number; readonly text: string };

/** An HTTP proxy that connects a command only to the hosts that it may reach. */
export class FilterProxy {
  /** By credentials. */
  readonly #clients = new Map<string, Client>();
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((request, response) => this.#forward(request, response));
  readonly #isOwn = createOwnAddressCheck();
  readonly #lookup = createForeignLookup(this.#isOwn);

  constructor() {
    this.#server.on("connect", (request, socket, head) => this.#openTunnel(request, socket, head));
    this.#server.on("clientError", (_error, socket) => socket.destroy());
  }

  /** Accepts the connections of a listening server, which does not keep this process running. */
  serve(server: Server): void {
    server.on("connection", (socket) => {
      this.#track(socket);
      this.#server.emit("connection", socket);
    });
    server.unref();
  }

  /** Registers a command. `mayConnect` is asked for each connection, with a formatted target. */
  open(mayConnect: (target: string) => boolean): Connections {
    const credentials = `${user}:${randomBytes(18).toString("base64url")}`;
    const blocked = new Set<string>();
    const client: Client = { connections: { credentials, blocked }, blocked, mayConnect };
    const [oldest] = this.#clients.keys();
    if (this.#clients.size >= clientLimit && oldest !== undefined) this.#clients.delete(oldest);
    this.#clients.set(credentials, client);
    return client.connections;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #openTunnel(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const target = parseTarget(request.url ?? "");
    const refusal = this.#findRefusal(request, target);
    if (refusal !== undefined || target === undefined)
      return void socket.end(formatResponse(refusal ?? badRequest));
    const { host, port } = target;
    const upstream = this.#track(connect({ host, port, lookup: this.#lookupFor(target) }));
    const fail = (error: Error) => socket.end(formatResponse(describeFailure(target, error)));
    upstream.once("error", fail);
    upstream.setTimeout(connectTimeoutMs, () => upstream.destroy(new Error("it does not answer")));
    upstream.once("connect", () => {
      upstream.off("error", fail);
      upstream.setTimeout(0);
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      upstream.write(head);
      pipeline(socket, upstream, () => {});
      pipeline(upstream, socket, () => {});
    });
  }

  #forward(request: IncomingMessage, response: ServerResponse): void {
    const target = parseAbsoluteUrl(request.url ?? "");
    const refusal = this.#findRefusal(request, target);
    if (refusal !== undefined || target === undefined) return answer(response, refusal ?? badRequest);
    const { host, port, path } = target;
    const fail = (error: Error) => answer(response, describeFailure(target, error));
    const upstream = sendRequest(
      {
        host,
        port,
        path,
        method: request.method,
        headers: omitProxyHeaders(request.rawHeaders),
        lookup: this.#lookupFor(target),
        agent: false,
        timeout: connectTimeoutMs,
      },
      (received) => {
        upstream.setTimeout(0);
        response.writeHead(received.statusCode ?? 502, received.rawHeaders);
        pipeline(received, response, () => {});
      },
    );
    upstream.on("timeout", () => upstream.destroy(new Error("it does not answer")));
    upstream.on("error", fail);
    response.on("close", () => upstream.destroy());
    request.pipe(upstream);
  }

  /** Returns why a request is refused, and remembers its target; undefined if it may connect. */
  #findRefusal({ headers }: IncomingMessage, target: Target | undefined): Refusal | undefined {
    const client = this.#findClient(headers["proxy-authorization"]);
    if (client === undefined)
      return { status: 407, text: "This proxy is for commands in Fairlead's sandbox." };
    if (target === undefined) return undefined;
    const formatted = formatTarget(target);
    if (client.mayConnect(formatted)) return undefined;
    if (client.blocked.size < blockedLimit) client.blocked.add(formatted);
    return { status: 403, text: `The sandbox of Fairlead blocked a connection to ${formatted}.` };
  }

  #findClient(header: string | undefined): Client | undefined {
    const [scheme, encoded = ""] = (header ?? "").split(" ");
    if (scheme?.toLowerCase() !== "basic") return undefined;
    const given = Buffer.from(encoded, "base64");
    for (const [credentials, client] of this.#clients) {
      const expected = Buffer.from(credentials);
      if (expected.length === given.length && timingSafeEqual(expected, given)) return client;
    }
    return undefined;
  }

  /** An allowed name of this computer is meant; another name that leads to it is not. */
  #lookupFor({ host }: Target): LookupFunction | undefined {
    return host === "localhost" || this.#isOwn(host) ? undefined : this.#lookup;
  }

  #track(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.unref();
    // Either side may reset the connection at any time.
    socket.on("error", () => {});
    return socket.once("close", () => this.#sockets.delete(socket));
  }
}

const badRequest: Refusal = { status: 400, text: "This proxy connects to http:// and https:// addresses." };

function parseAbsoluteUrl(text: string): (Target & { path: string }) | undefined {
  if (!text.toLowerCase().startsWith("http://") || !URL.canParse(text)) return undefined;
  const { hostname, port, pathname, search } = new URL(text);
  const host = hostname.replaceAll(/[[\]]/g, "");
  return { host, port: port === "" ? 80 : Number(port), path: `${pathname}${search}` };
}

function omitProxyHeaders(raw: readonly string[]): string[] {
  return raw.filter((_, index) => !proxyHeaders.has((raw[index - (index % 2)] ?? "").toLowerCase()));
}

function describeFailure(target: Target, error: Error): Refusal {
  return { status: 502, text: `No connection to ${formatTarget(target)}: ${error.message}.` };
}

const reasons: Readonly<Record<number, string>> = {
  400: "Bad Request",
  403: "Forbidden",
  407: "Proxy Authentication Required",
  502: "Bad Gateway",
};

function createHeaders({ status, text }: Refusal): Record<string, string> {
  return {
    "Content-Type": "text/plain",
    "Content-Length": String(Buffer.byteLength(text) + 1),
    Connection: "close",
    ...(status === 407 && { "Proxy-Authenticate": 'Basic realm="Fairlead"' }),
  };
}

function formatResponse(refusal: Refusal): string {
  const headers = Object.entries(createHeaders(refusal)).map(([name, value]) => `${name}: ${value}`);
  const { status, text } = refusal;
  return [`HTTP/1.1 ${status} ${reasons[status] ?? ""}`, ...headers, "", `${text}\n`].join("\r\n");
}

function answer(response: ServerResponse, refusal: Refusal): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(refusal.status, createHeaders(refusal));
  response.end(`${refusal.text}\n`);
}
