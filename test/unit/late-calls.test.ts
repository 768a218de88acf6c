import { afterEach, expect, test, vi } from "vitest";
import { collect } from "../../src/base/async.ts";
import { silentLog } from "../../src/base/log.ts";
import { describeModel } from "../../src/model/catalog.ts";
import { LateCalls } from "../../src/model/late-calls.ts";
import type { StepEvent } from "../../src/model/model.ts";

const finish: StepEvent = {
  type: "finish",
  reason: "stop",
  tokens: { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } },
};
const request = {
  model: describeModel({ provider: "test", model: "m" }, undefined),
  system: [],
  messages: [],
  tools: [],
  signal: new AbortController().signal,
};
const endpoint = { provider: "test", baseURL: "", headers: {}, modelId: "m", options: {}, stallMs: 1_000 };

afterEach(() => vi.doUnmock("../../src/model/stream.ts"));

test("a call whose part of the program cannot be loaded fails in words, and the next one tries again", async () => {
  const calls = new LateCalls({ send: () => Promise.reject(new Error("nothing is sent")), log: silentLog });
  const ask = () => collect(calls.stream(request, endpoint));
  vi.doMock("../../src/model/stream.ts", () => {
    throw new Error("Cannot find module './stream-1.cjs'");
  });
  expect(await ask()).toEqual([
    {
      type: "failed",
      error: expect.objectContaining({
        message: expect.stringContaining("A part of the program could not be loaded"),
      }),
    },
  ]);
  vi.doMock("../../src/model/stream.ts", () => ({
    Clients: Object,
    async *streamStep() {
      yield finish;
    },
  }));
  expect(await ask()).toEqual([finish]);
});
