import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { randomUUID } from "node:crypto";
import { z } from "zod";

/** A remote MCP server on this machine, built on the official SDK. */
export interface HttpMcpServer extends AsyncDisposable {
  readonly url: string;
  /** The requests, as method and path, in order. */
  readonly requests: readonly { readonly what: string; readonly headers: IncomingMessage["headers"] }[];
  /** Sessions that are open now. */
  readonly sessions: ReadonlyMap<string, unknown>;
  /** Drops all sessions, like a restarted server. */
  forget(): void;
  /** Adds a tool to all sessions and notifies the clients. */
  addTool(name: string): void;
}

export async function startHttpMcp(options: {
  /** The transport of the server; it rejects the other one. */
  speaks: "http" | "sse";
  /** Answers as JSON instead of as a stream. */
  json?: boolean;
  /** A status and a body for each request, instead of an answer. */
  status?: number;
  says?: string;
  /** Whether the separate event stream sends events endlessly. */
  floods?: boolean;
}): Promise<HttpMcpServer> {
  const remote = new Remote(options);
  const server = createServer((request, response) => {
    remote.answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the server has no port");
  return Object.assign(remote, {
    url: `http://127.0.0.1:${address.port}/mcp`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

type Transport = StreamableHTTPServerTransport | SSEServerTransport;

class Remote {
  readonly requests: { what: string; headers: IncomingMessage["headers"] }[] = [];
  readonly sessions = new Map<string, { transport: Transport; server: McpServer }>();
  readonly #options: Parameters<typeof startHttpMcp>[0];

  constructor(options: Parameters<typeof startHttpMcp>[0]) {
    this.#options = options;
  }

  forget(): void {
    this.sessions.clear();
  }

  addTool(name: string): void {
    for (const { server } of this.sessions.values()) addEcho(server, name);
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests.push({ what: `${request.method} ${request.url}`, headers: request.headers });
    const { speaks, status, says = "No.", floods = false } = this.#options;
    if (status !== undefined) return void response.writeHead(status).end(says);
    if (floods && request.method === "GET") return flood(response);
    return speaks === "sse" ? this.#sse(request, response) : this.#http(request, response);
  }

  async #http(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = String(request.headers["mcp-session-id"]);
    const known = this.sessions.get(id)?.transport;
    if (request.headers["mcp-session-id"] !== undefined && known === undefined)
      return void response.writeHead(404).end("No such session.");
    if (known instanceof StreamableHTTPServerTransport) return known.handleRequest(request, response);
    if (request.method !== "POST") return void response.writeHead(405).end();
    const server = echoServer();
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      enableJsonResponse: this.#options.json === true,
      onsessioninitialized: (sessionId) => void this.sessions.set(sessionId, { transport, server }),
      onsessionclosed: (sessionId) => void this.sessions.delete(sessionId),
    });
    await server.connect(transport);
    return transport.handleRequest(request, response);
  }

  async #sse(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://localhost");
    if (request.method === "GET" && url.pathname === "/mcp") {
      const transport = new SSEServerTransport("/messages", response);
      const server = echoServer();
      this.sessions.set(transport.sessionId, { transport, server });
      return server.connect(transport);
    }
    const transport = this.sessions.get(url.searchParams.get("sessionId") ?? "")?.transport;
    if (!(transport instanceof SSEServerTransport)) return void response.writeHead(404).end();
    return transport.handlePostMessage(request, response, await json(request));
  }
}

function flood(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const event = `data: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/tools/list_changed" })}\n\n`;
  const events = event.repeat(1_000);
  const write = () => {
    while (response.write(events));
    response.once("drain", write);
  };
  write();
}

function echoServer(): McpServer {
  const server = new McpServer({ name: "remote", version: "1.0.0" });
  addEcho(server, "echo");
  server.registerTool("giant", { description: "Says far too much." }, () => ({
    content: [{ type: "text", text: "x".repeat(17 * 1024 * 1024) }],
  }));
  return server;
}

function addEcho(server: McpServer, name: string): void {
  const input = { description: "Says it again.", inputSchema: { text: z.string() } };
  server.registerTool(name, input, ({ text }) => ({ content: [{ type: "text", text }] }));
}
