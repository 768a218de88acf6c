import { createMcpHandler } from "@modelcontextprotocol/server";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { buffer } from "node:stream/consumers";
import { createModernServer } from "./modern-server.ts";

/** A remote MCP server for the protocol of 2026-07-28 on this machine. */
export interface ModernHttpServer extends AsyncDisposable {
  readonly url: string;
  /** The requests in order: the protocol method, and the headers. */
  readonly requests: readonly { readonly method: string; readonly headers: IncomingMessage["headers"] }[];
  /** Adds a tool and notifies the clients that listen. */
  addTool(name: string): void;
  /** Notifies the clients that listen of a changed resource. */
  change(uri: string): void;
  /** Supports only the older protocol from now on, as after a downgrade. */
  downgrade(): void;
}

export async function startModernHttp(
  options: { legacy?: "stateless" | "reject" } = {},
): Promise<ModernHttpServer> {
  const { legacy = "reject" } = options;
  const requests: { method: string; headers: IncomingMessage["headers"] }[] = [];
  const more: string[] = [];
  let isOld = false;
  const handler = createMcpHandler(() => createModernServer("1.0.0", more), { legacy });
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request);
    const method = methodOf(body);
    requests.push({ method, headers: request.headers });
    const isRefused = isOld && !["initialize", "notifications/initialized"].includes(method);
    if (isRefused && request.headers["mcp-protocol-version"] === "2026-07-28")
      return void response.writeHead(400).end("What is this?");
    const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)] as const);
    const made = new Request(`http://127.0.0.1${request.url}`, {
      method: request.method ?? "GET",
      headers: Object.fromEntries(headers),
      ...(body.length > 0 && { body }),
    });
    const { status, headers: given, body: content } = await handler.fetch(made);
    response.writeHead(status, Object.fromEntries(given));
    if (content === null) return void response.end();
    return pipeline(Readable.fromWeb(content), response);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("the server has no port");
  return {
    url: `http://127.0.0.1:${address.port}/mcp`,
    requests,
    addTool: (name) => {
      more.push(name);
      handler.notify.toolsChanged();
    },
    change: (uri) => handler.notify.resourceUpdated(uri),
    downgrade: () => (isOld = true),
    async [Symbol.asyncDispose]() {
      await handler.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function methodOf(body: Buffer): string {
  const parsed: unknown = body.length === 0 ? {} : JSON.parse(body.toString("utf8"));
  return String(Reflect.get(Object(parsed), "method"));
}
