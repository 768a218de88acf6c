import type { RequestListener, ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { listen } from "../support/listen.ts";
import type { Api } from "../../src/config/api.ts";
import { ask, type Replayed } from "./replay.ts";
import { wires } from "./wire.ts";

const events = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { "content-type": "text/event-stream" });

async function answeredOver(api: Api, answer: RequestListener, stallMs = 10_000): Promise<Replayed> {
  await using server = await listen((request, response) => {
    request.resume().once("end", () => answer(request, response));
  });
  return await ask(server.url, { api, stallMs });
}

describe.each(wires)("faults over $name", ({ api, begun: started, openCall, ended, errors, refusals }) => {
  const answered = (answer: RequestListener, stallMs?: number): Promise<Replayed> =>
    answeredOver(api, answer, stallMs);
  const streamed = (...frames: readonly string[]): Promise<Replayed> =>
    answered((_, response) => events(response).end(frames.join("")));

  test.each(errors)("$name fails with its message, and earlier events stay", async (error) => {
    const { code, retryable, words, frame } = error;
    for (const before of ["", started]) {
      const { text, end } = await streamed(before, frame, started, ended);
      expect(text).toBe(before === "" ? "" : "Hello");
      expect(end).toMatchObject({ type: "failed", error: { code, retryable } });
      expect(end.type === "failed" && end.error.message).toContain(words);
    }
  });

  test.each(errors)("$name after the end of an answer does not change it", async ({ frame }) => {
    const { text, end } = await streamed(started, ended, frame);
    expect(text).toBe("Hello");
    expect(end).toMatchObject({ type: "finish", reason: "stop" });
  });

  test("an error emits no incomplete call", async () => {
    for (const { frame } of errors) {
      const { calls, end } = await streamed(openCall, frame);
      expect(calls).toEqual([]);
      expect(end.type).toBe("failed");
    }
  });

  test.each([
    [400, "bad-request", false],
    [401, "auth", false],
    [404, "not-found", false],
    [408, "timeout", true],
    [413, "context-length", false],
    [422, "bad-request", false],
    [429, "rate-limit", true],
    [500, "server", true],
    [502, "server", true],
    [503, "overloaded", true],
    [504, "timeout", true],
    [529, "overloaded", true],
  ])("status %i is %s", async (status, code, retryable) => {
    const { end } = await answered((_, response) =>
      response.writeHead(status).end('{"error":{"message":"No."}}'),
    );
    expect(end).toMatchObject({ type: "failed", error: { code, status, retryable } });
  });

  test.each(refusals)("$name", async ({ status, headers = {}, body, error }) => {
    const { end } = await answered((_, response) =>
      response
        .writeHead(status, { "content-type": "application/json", ...headers })
        .end(JSON.stringify(body)),
    );
    expect(end).toMatchObject({ type: "failed", error: { ...error, status } });
  });

  test("a web page is named in the error", async () => {
    for (const status of [200, 502]) {
      const { end } = await answered((_, response) =>
        response
          .writeHead(status, { "content-type": "text/html" })
          .end("<html><head><title>Log in</title></head></html>"),
      );
      expect(end.type === "failed" && end.error.message).toContain('("Log in")');
    }
  });

  test.each([
    ["before the answer", ""],
    ["in a text", "text"],
    ["in a call", "call"],
  ])("a reset %s is a network error", async (_, where) => {
    const before = where === "" ? "" : where === "text" ? started : openCall;
    const { calls, end } = await answered((__, response) => {
      const { socket } = response;
      if (before === "") socket?.resetAndDestroy();
      else events(response).write(before, () => setImmediate(() => socket?.resetAndDestroy()));
    });
    expect(calls).toEqual([]);
    expect(end).toMatchObject({ type: "failed", error: { code: "network", retryable: true } });
  });

  test("a reset after the end of an answer does not change it", async () => {
    const { text, end } = await answered((_, response) => {
      events(response).write(started + ended, () => setImmediate(() => response.socket?.resetAndDestroy()));
    });
    expect([text, end.type]).toEqual(["Hello", "finish"]);
  });

  test("silence fails, even with comments", async () => {
    for (const frame of ["", started, `${started}: ping\n\n: ping\n\n`]) {
      const { text, end } = await answered((_, response) => void events(response).write(`${frame}\n`), 400);
      expect(text).toBe(frame === "" ? "" : "Hello");
      expect(end).toMatchObject({ type: "failed", error: { code: "timeout", retryable: true } });
    }
  });

  test.each([
    "data: {\n\n",
    "data: [1]\n\n",
    "data: nonsense\n\n",
    'data: {"choices":[{"delta":{"content":"x"}\n\n',
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"x"\n\n',
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0\n\n',
  ])("the malformed event %j fails, and earlier events stay", async (frame) => {
    const { text, end } = await streamed(started, frame, started, ended);
    expect(text).toBe("Hello");
    expect(end).toMatchObject({ type: "failed", error: { code: "invalid-response", retryable: true } });
  });

  test("a stream that ends before the answer does fails", async () => {
    for (const frames of [[], [started], [started, openCall]]) {
      const { calls, end } = await streamed(...frames);
      expect(calls).toEqual([]);
      expect(end).toMatchObject({ type: "failed", error: { code: "invalid-response", retryable: true } });
    }
  });
});
