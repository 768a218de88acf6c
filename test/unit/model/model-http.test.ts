import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { type HttpRequest, sendHttp } from "../../../src/model/http.ts";

type Behave = (socket: Socket) => void;

/** A raw socket server: the test writes its HTTP answer after a request. */
async function startServer(behave: Behave) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    // The other side may close it early.
    socket.on("error", () => {});
    socket.once("data", () => behave(socket));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    host: `127.0.0.1:${address.port}`,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** The code and message of the error, also while the body is read; "answered" if there is none. */
async function failureOf(url: string, request: Partial<HttpRequest> = {}): Promise<string> {
  const signal = AbortSignal.timeout(5_000);
  try {
    const answer = await sendHttp(new URL(url), { headers: {}, signal, ...request });
    for await (const _ of answer.body);
    return "answered";
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return `${typeof code === "string" ? code : "Error"}: ${error instanceof Error ? error.message : ""}`;
  }
}

test("an answer of another protocol ends the request", async () => {
  using server = await startServer((socket) =>
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
  );
  expect(await failureOf(`http://${server.host}`)).toBe(
    "Error: The server ended the connection without an answer.",
  );
});

test("gives up a connection that is not established in time", async () => {
  using server = await startServer(() => {});
  expect(await failureOf(`https://${server.host}`, { connectMs: 50 })).toBe(
    "ETIMEDOUT: The connection timed out.",
  );
});

test("a server that responds slowly is waited for", async () => {
  using server = await startServer((socket) => {
    setTimeout(() => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"), 100);
  });
  expect(await failureOf(`http://${server.host}`, { connectMs: 20 })).toBe("answered");
});

test("an answer that breaks off throws in its reader, compressed or not", async () => {
  for (const encoding of ["identity", "gzip", "br"]) {
    using server = await startServer((socket) =>
      socket.end(`HTTP/1.1 200 OK\r\ncontent-encoding: ${encoding}\r\ncontent-length: 100\r\n\r\n`),
    );
    expect(await failureOf(`http://${server.host}`)).toBe("ECONNRESET: aborted");
  }
});
