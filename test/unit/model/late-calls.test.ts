import { expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { newMessageId, newPartId, newSessionId } from "../../../src/message/ids.ts";
import type { Message } from "../../../src/message/message.ts";
import { describeModel } from "../../../src/model/catalog/catalog.ts";
import { LazyCalls } from "../../../src/model/providers/lazy-calls.ts";

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

test("model code is loaded once for parallel calls, and again after a failure", async () => {
  let requested = 0;
  const send = () => Promise.reject(new Error(`refused ${++requested}`));
  const calls = new LazyCalls({ send, log: silentLog });
  const call = () => calls.call(request, endpoint, () => undefined);
  expect(await Promise.all([call(), call()])).toMatchObject([{ type: "failed" }, { type: "failed" }]);
  expect(requested).toBe(2);
});
