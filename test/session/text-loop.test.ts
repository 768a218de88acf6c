import { assert, constantFrom, nat, property, string } from "fast-check";
import { describe, expect, test } from "vitest";
import {
  RepeatedTextError,
  shortestPeriod,
  StepLoopDetector,
  TextLoopDetector,
} from "../../src/turn/text-loop.ts";

const passage = "I will look at the file again, and then I will look at it once more. ";

/** Feeds the text in chunks. Returns how many characters were read before a loop was detected, if one was. */
function readUntilLoop(text: string, piece: number): number | undefined {
  const loop = new TextLoopDetector();
  for (let at = 0; at < text.length; at += piece) {
    if (loop.add(text.slice(at, at + piece)) !== undefined) return at + piece;
  }
  return undefined;
}

describe("a repeated passage", () => {
  test.each([4_000, 5_001, 50_000])("is detected in chunks of %d characters", (piece) => {
    const text = `Let me begin.\n${passage.repeat(2_000)}`;
    expect(readUntilLoop(text, piece)).toBeLessThanOrEqual(Math.max(piece, 24_000));
  });

  test("is detected by its length and its words", () => {
    const seen = new TextLoopDetector().add(passage.repeat(1_000));
    expect(seen?.length).toBe(passage.length);
    expect(seen && new RepeatedTextError(seen).message).toContain(`the same ${passage.length} characters`);
  });

  test("is not detected after few repetitions, in counting, in lists and in filler", () => {
    const counting = Array.from({ length: 2_000 }, (_, index) => `${index}. ${passage}`).join("\n");
    expect(readUntilLoop(counting, 4_000)).toBeUndefined();
    expect(readUntilLoop(passage.repeat(200), 4_000)).toBeUndefined();
    expect(readUntilLoop("-".repeat(500_000), 4_000)).toBeUndefined();
    expect(readUntilLoop("| a | b |\n".repeat(50_000), 4_000)).toBeUndefined();
  });

  test("of filler is detected too, if it does not end by itself", () => {
    expect(readUntilLoop("-".repeat(3_000_000), 4_000)).toBeLessThan(2_200_000);
  });
});

test("the shortest period is the shortest passage that repeats to the text", () => {
  assert(
    property(string({ minLength: 1, maxLength: 12, unit: constantFrom("a", "b") }), nat(5), (unit, more) => {
      const text = unit.repeat(2 + more);
      const period = shortestPeriod(text);
      expect(text.slice(period)).toBe(text.slice(0, text.length - period));
      expect(period).toBeLessThanOrEqual(unit.length);
    }),
  );
});

test("equal steps are detected at the eighth in a row, short texts never", () => {
  const long = new StepLoopDetector();
  const short = new StepLoopDetector();
  const seen = Array.from({ length: 8 }, () => long.isLoop(passage.repeat(2)));
  expect(seen).toEqual([false, false, false, false, false, false, false, true]);
  expect(long.isLoop("Something else.")).toBe(false);
  expect(Array.from({ length: 20 }, () => short.isLoop("Let me look."))).not.toContain(true);
});
