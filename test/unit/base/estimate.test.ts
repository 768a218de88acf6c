import { expect, test } from "vitest";
import { estimateTokenCount } from "tokenx";
import { estimateJsonOf, estimateText, estimateTextOf } from "../../../src/message/estimate.ts";

const code = "export function add(one: number, other: number) {\n  return one + other; // 1234\n}\n";

test("counts short texts exactly and long ones approximately, by samples", () => {
  expect(estimateText("")).toBe(0);
  expect(estimateText(code)).toBe(estimateTokenCount(code));
  const mixed = `${code.repeat(2_000)}${"Über die Wörter. ".repeat(8_000)}`;
  const whole = estimateTokenCount(mixed);
  expect(estimateText(mixed)).toBeGreaterThan(whole * 0.9);
  expect(estimateText(mixed)).toBeLessThan(whole * 1.1);
});

test("recounts a cached text only if it has changed", () => {
  const owner = {};
  const first = estimateTextOf(owner, code);
  expect(first).toBe(estimateText(code));
  expect(estimateTextOf(owner, code + code)).toBe(estimateText(code + code));
  expect(estimateTextOf({}, "")).toBe(0);

  let counted = 0;
  const input = {
    toJSON() {
      counted++;
      return { command: "ls" };
    },
  };
  const tokens = estimateJsonOf(input);
  expect(tokens).toBe(estimateText('{"command":"ls"}'));
  expect(estimateJsonOf(input)).toBe(tokens);
  expect(counted).toBe(1);
});
