import { expect, test } from "vitest";
import { Batches, sortBatch } from "../../../src/acp/transport/batches.ts";

const list = (id: number) => ({ jsonrpc: "2.0" as const, id, method: "session/list" });
const answer = (id: number) => ({ jsonrpc: "2.0" as const, id, result: {} });

test("rejects a used id, inside or outside the batch, and keeps the other request", () => {
  const { messages, requests, errors } = sortBatch([list(1), list(1), list(2)], new Set([2]));
  expect({ messages, requests }).toEqual({ messages: [list(1)], requests: [1] });
  expect(errors).toEqual(
    [1, 2].map((id) => ({
      jsonrpc: "2.0",
      id: null,
      error: { code: -32600, message: `Invalid request: the id ${id} is in use.` },
    })),
  );
});

test("each of several open batches gets its own response", () => {
  const batches = new Batches();
  expect(batches.begin([1, 2], [])).toEqual([]);
  expect(batches.begin([3], [answer(9)])).toEqual([]);
  expect(batches.collect(2, answer(2))).toEqual([]);
  expect(batches.collect(3, answer(3))).toEqual([answer(9), answer(3)]);
  expect(batches.collect(1, answer(1))).toEqual([answer(2), answer(1)]);
  expect(batches.has(1)).toBe(false);
  expect(batches.begin([], [answer(9)])).toEqual([answer(9)]);
});
