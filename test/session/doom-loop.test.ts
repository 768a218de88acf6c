import { expect, test } from "vitest";
import {
  isDoomLoop,
  type CallFingerprint,
  fingerprintCall,
  fingerprintResult,
} from "../../src/tool-calls/doom-loop.ts";

/**
 * The positions, counted from 1, at which a sequence of calls counts as a loop. Each letter is one call, a
 * digit its result.
 */
function loopsIn(row: string): number[] {
  const calls = [...row.matchAll(/([a-z])(\d?)/g)].map(([, call = "", result]): CallFingerprint => ({
    call,
    ...(result && { result }),
  }));
  return calls.flatMap((_, at) => {
    const before = calls.slice(0, at);
    const running = calls.slice(at, at + 1).map(({ call }) => ({ call }));
    return isDoomLoop([...before, ...running]) ? [at + 1] : [];
  });
}

test.each([
  ["", []],
  ["aa", []],
  ["aaa", [3]],
  ["aaaa", [3, 4]],
  ["abab", []],
  ["ababab", [6]],
  ["abcabcabc", [9]],
  ["abcdabcdabcd", [12]],
  ["abcdeabcdeabcde", []],
  ["aabaab", []],
  ["aabaabaab", [9]],
  ["xyaaab", [5]],
  ["abacadaeafagah", []],
])("in the calls %j the loops end at %j", (calls, ends) => {
  expect(loopsIn(calls)).toEqual(ends);
});

test.each([
  ["a1a1a1", [3]],
  ["a1a2a3a4a5", []],
  ["a1a1a2a2a2a2", [3, 5, 6]],
  ["a1b1a1b2a1b3a1b4", []],
  ["a1b1a1b1a1b1", [6]],
  ["a1a1aa1", [3, 4]],
  ["a1aa1", [3]],
])("with results, as in %j, the loops end at %j", (calls, ends) => {
  expect(loopsIn(calls)).toEqual(ends);
});

test("calls are equal if tool and input are equal", () => {
  const read = fingerprintCall("read", { filePath: "a", offset: 1 });
  expect(fingerprintCall("read", { filePath: "a", offset: 1 })).toEqual(read);
  expect(fingerprintCall("read", { filePath: "a", offset: 2 })).not.toEqual(read);
  expect(fingerprintCall("list", { filePath: "a", offset: 1 })).not.toEqual(read);
});

test("results are equal if their content is, wherever the complete one was saved", () => {
  const completed = { status: "completed", output: "one" } as const;
  const first = fingerprintResult({ ...completed, notes: "The whole is in /a" });
  expect(fingerprintResult({ ...completed, notes: "The whole is in /b" })).toBe(first);
  expect(fingerprintResult({ ...completed, output: "two" })).not.toBe(first);
  expect(fingerprintResult({ ...completed, metadata: { exitCode: 1 } })).not.toBe(first);
  expect(fingerprintResult({ status: "failed", error: "one" })).not.toBe(first);
});
