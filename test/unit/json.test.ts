import { expect, test } from "vitest";
import { nestsDeeper } from "../../src/base/json.ts";

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

test("levels of a text are counted, whatever stands in its strings", () => {
  expect(nestsDeeper(3, nested(4))).toBe(false);
  expect(nestsDeeper(3, nested(5))).toBe(true);
  expect(nestsDeeper(3, JSON.stringify({ a: nested(9), "[[[[": "\\", b: '\\"[[[[[' }))).toBe(false);
  expect(nestsDeeper(3, `{"a": "\\\\", "b": ${nested(4)}}`)).toBe(true);
  expect(nestsDeeper(3, '{"a": "[[[[[[')).toBe(false);
});

test("a string of many million characters is none too long", () => {
  for (const piece of ["x", '\\"', "\\\\", "\\n"])
    expect(nestsDeeper(3, `{"a": "${piece.repeat(20_000_000)}"}`)).toBe(false);
});
