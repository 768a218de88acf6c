import { expect, test } from "vitest";
import { fromJson, nestsDeeper, toJson } from "../../../src/base/text/json.ts";
import { toWireJson } from "../../../src/acp/transport/sanitize-output.ts";

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

test("counts nesting levels, ignoring the contents of strings", () => {
  expect(nestsDeeper(3, nested(4))).toBe(false);
  expect(nestsDeeper(3, nested(5))).toBe(true);
  expect(nestsDeeper(3, JSON.stringify({ a: nested(9), "[[[[": "\\", b: '\\"[[[[[' }))).toBe(false);
  expect(nestsDeeper(3, `{"a": "\\\\", "b": ${nested(4)}}`)).toBe(true);
  expect(nestsDeeper(3, '{"a": "[[[[[[')).toBe(false);
});

test("a string of many million characters is not too long", () => {
  for (const piece of ["x", '\\"', "\\\\", "\\n"])
    expect(nestsDeeper(3, `{"a": "${piece.repeat(20_000_000)}"}`)).toBe(false);
});

test("replaces half of a surrogate pair, whether it is escaped or literal", () => {
  for (const half of ["\ud83d", "\udc4d", "a\ud83d, b", "\udc4d\ud83d"]) {
    const whole = { [half.toWellFormed()]: [half.toWellFormed()] };
    expect(fromJson(JSON.stringify({ [half]: [half] }))).toEqual(whole);
    expect(fromJson(`{"${half}":["${half}"]}`)).toEqual(whole);
    expect(JSON.parse(toJson({ [half]: [half] }))).toEqual(whole);
  }
});

test("texts that look like JSON or like an escape are unchanged", () => {
  for (const text of ["\\ud83d", "\\\\ud83d", '\\"', '","', "\\u0007", "\\b", '"}}]}', "👍"]) {
    const value = { title: text, [text]: [text] };
    expect(fromJson(JSON.stringify(value))).toEqual(value);
    expect(JSON.parse(toJson(value))).toEqual(value);
    expect(JSON.parse(toWireJson(value))).toEqual(value);
  }
});
