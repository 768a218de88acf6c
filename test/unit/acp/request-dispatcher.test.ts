import type { AnyMessage } from "@agentclientprotocol/sdk/unstable";
import { expect, test, vi } from "vitest";
import { Requester } from "../../../src/acp/client/requester.ts";
import type { ProtocolVersion, RequestHandler } from "../../../src/acp/methods/method-table.ts";
import { RequestDispatcher } from "../../../src/acp/request-dispatcher.ts";
import { type Log, silentLog } from "../../../src/base/log.ts";

function versionOf(number: number, requests: Record<string, RequestHandler> = {}): ProtocolVersion {
  const handlers = { initialize: () => ({ protocolVersion: number }), ...requests };
  return { requests: new Map(Object.entries(handlers)), notifications: new Map(), isStrict: number > 1 };
}

function dispatch(requests: Record<string, RequestHandler> = {}, log: Log = silentLog) {
  const sent: AnyMessage[] = [];
  const send = (message: AnyMessage) => sent.push(message);
  const requester = new Requester(send, log);
  const stable = versionOf(1, requests);
  const draft = versionOf(2, requests);
  const ignore = () => {};
  const calls = { onAnswered: ignore, onEnd: ignore };
  const dispatcher = new RequestDispatcher({ send, requester, stable, draft, log, ...calls });
  const receive = (message: object) =>
    dispatcher.receive({ message: { jsonrpc: "2.0", method: "", ...message }, isAnswered: false });
  const initialize = (protocolVersion: number) =>
    receive({ id: "init", method: "initialize", params: { protocolVersion } });
  return { sent, receive, initialize, requester, dispatcher };
}

const errorOf = (code: number) => ({ error: expect.objectContaining({ code }) });

test("a request sees what the previous one changed, and does not wait for its response", async () => {
  const handled: unknown[] = [];
  const never = new Promise(() => {});
  const { receive, initialize, sent } = dispatch({
    slow: async () => {
      handled.push("slow");
      await Promise.resolve();
      handled.push("changed");
      await never;
    },
    quick: () => handled.push("quick"),
  });
  initialize(1);
  receive({ id: 1, method: "slow" });
  receive({ id: 2, method: "quick" });
  await vi.waitFor(() => expect(sent).toHaveLength(2));
  expect(handled).toEqual(["slow", "changed", "quick"]);
});

test("rejects a request before initialize; the connection can be initialized later", async () => {
  const { receive, initialize, sent } = dispatch({ list: () => [] });
  receive({ id: 1, method: "list" });
  initialize(1);
  receive({ id: 2, method: "list" });
  await vi.waitFor(() => expect(sent).toHaveLength(3));
  const answers = sent.map((message) => ("id" in message ? [message.id, "result" in message] : []));
  expect(answers).toEqual(
    expect.arrayContaining([
      [1, false],
      ["init", true],
      [2, true],
    ]),
  );
});

test("version 1 answers ids that are null or fractions, version 2 rejects them", async () => {
  for (const [version, ids] of [
    [1, [null, 1.5]],
    [2, [null, null]],
  ] as const) {
    const { receive, initialize, sent } = dispatch({ list: () => [] });
    initialize(version);
    receive({ id: null, method: "list" });
    receive({ id: 1.5, method: "list" });
    await vi.waitFor(() => expect(sent).toHaveLength(3));
    const answers = sent.filter((message) => "id" in message && message.id !== "init");
    expect(answers).toMatchObject(
      ids.map((id) => (version === 1 ? { id, result: [] } : { id, ...errorOf(-32600) })),
    );
  }
});

test("version 2 rejects an initialize after other requests, version 1 accepts it", async () => {
  for (const version of [1, 2]) {
    const { receive, initialize, sent } = dispatch({ list: () => [] });
    initialize(version);
    initialize(version);
    receive({ id: 1, method: "list" });
    initialize(version);
    await vi.waitFor(() => expect(sent).toHaveLength(4));
    const rejected = sent.filter((message) => "error" in message);
    expect(rejected).toMatchObject(version === 1 ? [] : [errorOf(-32600)]);
  }
});

test("a cancelled request is answered as cancelled if its handler gives up", async () => {
  const { receive, initialize, sent } = dispatch({
    wait: (_, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError"))),
      ),
  });
  initialize(1);
  receive({ id: "w", method: "wait" });
  receive({ method: "$/cancel_request", params: { requestId: "w" } });
  await vi.waitFor(() => expect(sent).toHaveLength(2));
  expect(sent[1]).toMatchObject({ id: "w", error: { code: -32800, data: { requestId: "w" } } });
});

test("an unexpected error is answered with its message and logged with its stack", async () => {
  const warn = vi.fn();
  const failing = () => {
    throw new Error("The disk is full");
  };
  const { receive, initialize, sent } = dispatch({ fail: failing }, { ...silentLog, warn });
  initialize(1);
  receive({ id: 1, method: "fail" });
  await vi.waitFor(() => expect(sent).toHaveLength(2));
  expect(sent).toContainEqual(expect.objectContaining({ id: 1, ...errorOf(-32603) }));
  const stack = expect.stringContaining("The disk is full");
  expect(warn).toHaveBeenCalledWith("request failed", expect.objectContaining({ method: "fail", stack }));
});

test("a request to the client gets its result or error; a late response is dropped", async () => {
  const { dispatcher, requester, sent } = dispatch();
  const respond = (response: { id: number; result?: unknown; error?: { code: number; message: string } }) => {
    const { id, result = null, error } = response;
    const message: AnyMessage = error ? { jsonrpc: "2.0", id, error } : { jsonrpc: "2.0", id, result };
    dispatcher.receive({ message, isAnswered: false });
  };
  const abort = new AbortController();
  const requests = Array.from({ length: 3 }, () => requester.request("ask", {}, abort.signal));
  const outcomes = Promise.allSettled(requests);
  respond({ id: 1, error: { code: 7, message: "no" } });
  respond({ id: 0, result: "yes" });
  await requests[0];
  abort.abort();
  respond({ id: 2, result: "late" });
  expect(await outcomes).toMatchObject([
    { value: "yes" },
    { reason: { code: 7, message: "no" } },
    { reason: { code: -32800 } },
  ]);
  expect(sent.at(-1)).toMatchObject({ method: "$/cancel_request", params: { requestId: 2 } });
});
