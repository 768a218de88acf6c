import { expect, test } from "vitest";
import { fingerprint, isDoomLoop } from "../../src/session/doom-loop.ts";

/** The places, counted from 1, at which a row of calls counts as a loop. Each letter is one call. */
function loopsIn(row: string): number[] {
  const calls = row.split("");
  return calls.flatMap((_, at) => (isDoomLoop(calls.slice(0, at + 1)) ? [at + 1] : []));
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

test("a call is the same when its tool and its input are", () => {
  const read = fingerprint("read", { filePath: "a", offset: 1 });
  expect(fingerprint("read", { filePath: "a", offset: 1 })).toBe(read);
  expect(fingerprint("read", { filePath: "a", offset: 2 })).not.toBe(read);
  expect(fingerprint("list", { filePath: "a", offset: 1 })).not.toBe(read);
});
