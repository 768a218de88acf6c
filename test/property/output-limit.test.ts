import * as fc from "fast-check";
import { expect, test } from "vitest";
import { countLines, cutText } from "../../src/tool/output-limit.ts";
import { tries } from "../support/run-length.ts";

const text = fc
  .array(fc.oneof(fc.string({ unit: "grapheme", maxLength: 12 }), fc.constant("\n"), fc.constant("😀é")), {
    maxLength: 40,
  })
  .map((pieces) => pieces.join(""));
const limits = { lines: fc.integer({ min: 0, max: 12 }), bytes: fc.integer({ min: 0, max: 80 }) };

test("a truncation keeps whole characters of the beginning or end, within both limits", () => {
  fc.assert(
    fc.property(
      text,
      limits.lines,
      limits.bytes,
      fc.constantFrom("head", "tail"),
      (whole, maxLines, maxBytes, keep) => {
        const stored = cutText(whole, maxLines, maxBytes, keep);
        expect(keep === "head" ? whole.startsWith(stored) : whole.endsWith(stored)).toBe(true);
        expect(countLines(stored)).toBeLessThanOrEqual(maxLines);
        expect(Buffer.byteLength(stored)).toBeLessThanOrEqual(maxBytes);
        expect(stored.isWellFormed()).toBe(true);
      },
    ),
    { numRuns: tries(2000) },
  );
});

test("a text within the limits is not truncated", () => {
  fc.assert(
    fc.property(text, fc.constantFrom("head", "tail"), (whole, keep) => {
      expect(cutText(whole, countLines(whole), Buffer.byteLength(whole), keep)).toBe(whole);
    }),
  );
});

test("no further whole character would have fitted", () => {
  fc.assert(
    fc.property(text, limits.bytes, (whole, maxBytes) => {
      const stored = cutText(whole, Number.MAX_SAFE_INTEGER, maxBytes, "head");
      const [next] = whole.slice(stored.length);
      if (next !== undefined) expect(Buffer.byteLength(stored + next)).toBeGreaterThan(maxBytes);
    }),
  );
});
