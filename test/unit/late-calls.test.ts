import { expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { newMessageId, newPartId, newSessionId } from "../../src/message/ids.ts";
import type { Message } from "../../src/message/message.ts";
import { describeModel } from "../../src/model/catalog.ts";
import { LateCalls } from "../../src/model/late-calls.ts";

const question: Message = {
  info: { id: newMessageId(), sessionId: newSessionId(), role: "user", time: { created: 1 }, agent: "build" },
  parts: [{ id: newPartId(), type: "text", text: "hello" }],
};
const request = {
  model: describeModel({ provider: "test", model: "m" }, undefined),
  system: [],
  messages: [question],
  tools: [],
  signal: new AbortController().signal,
};
const baseURL = "http://127.0.0.1:1/v1";
const endpoint = { provider: "test", baseURL, headers: {}, modelId: "m", options: {}, stallMs: 10_000 };

test("who leaves before a call has loaded asks nobody, and who does not wait for an answer asks once", async () => {
  let asked = 0;
  const send = () => Promise.reject(new Error(`refused ${++asked}`));
  const calls = new LateCalls({ send, log: silentLog });
  const begin = () => calls.stream(request, endpoint)[Symbol.asyncIterator]();
  const ended = { done: true, value: undefined };

  const leaving = begin();
  expect(await Promise.all([leaving.next(), leaving.return?.()])).toEqual([ended, ended]);
  const left = begin();
  expect(await left.return?.()).toEqual(ended);
  expect(await left.next()).toEqual(ended);
  expect(asked).toBe(0);

  const hasty = begin();
  const [first, second] = await Promise.all([hasty.next(), hasty.next()]);
  expect(first.value).toMatchObject({ type: "failed" });
  expect(second).toEqual(ended);
  expect(asked).toBe(1);
});
