import * as fc from "fast-check";
import { expect, test } from "vitest";
import { applyEdit } from "../../src/tool/edit/edit-match.ts";
import type { EditOutcome } from "../../src/tool/edit/edit-match.ts";
import { tries } from "../support/run-length.ts";

const word = fc.constantFrom(
  "if",
  "x",
  "=",
  "return",
  "{",
  "}",
  "(a, b)",
  "//",
  "é😀",
  "\\n",
  '"',
  "  ",
  "\t",
);
const line = fc.array(word, { maxLength: 5 }).map((words) => words.join(" "));
const lines = (max: number) => fc.array(line, { maxLength: max });
const lineEnd = fc.constantFrom("\n", "\r\n");
const text = fc.tuple(lines(15), lineEnd).map(([list, end]) => list.join(end));
const anyEdit = fc.record({
  oldString: fc.oneof(
    lines(5).map((list) => list.join("\n")),
    fc.string(),
  ),
  newString: fc.oneof(
    lines(5).map((list) => list.join("\n")),
    fc.string(),
  ),
  replaceAll: fc.boolean(),
});

test("replaces text that occurs once", () => {
  fc.assert(
    fc.property(lines(10), lines(4), lines(10), line, lineEnd, (before, middle, after, newText, end) => {
      const needle = ["<<unique", ...middle, "unique>>"];
      const whole = [...before, ...needle, ...after].join(end);
      const outcome = applyEdit(whole, { oldString: needle.join("\n"), newString: newText });
      expect(shown(outcome)).toEqual({ strategy: "exact", text: [...before, newText, ...after].join(end) });
    }),
    { numRuns: tries(1000) },
  );
});

test("prefers an exact match", () => {
  fc.assert(
    fc.property(text, anyEdit, (whole, edit) => {
      fc.pre(edit.oldString !== "" && plain(whole).includes(plain(edit.oldString)));
      const outcome = applyEdit(whole, edit);
      if (outcome.outcome === "replaced") {
        for (const span of outcome.spans) {
          expect(plain(whole.slice(span.start, span.end))).toBe(plain(edit.oldString));
        }
      }
      expect(outcome).toMatchObject({ strategy: "exact" });
    }),
    { numRuns: tries(2000) },
  );
});

test("nothing outside of the spans changes", () => {
  fc.assert(
    fc.property(text, anyEdit, (whole, edit) => {
      const outcome = applyEdit(whole, edit);
      if (outcome.outcome !== "replaced") return;
      let rest = outcome.text;
      let done = 0;
      for (const [index, { start, end }] of outcome.spans.entries()) {
        const stored = whole.slice(done, start);
        const at = index === 0 ? 0 : rest.indexOf(stored);
        expect(rest.slice(at, at + stored.length)).toBe(stored);
        rest = rest.slice(at + stored.length);
        done = end;
      }
      expect(rest.endsWith(whole.slice(done))).toBe(true);
    }),
    { numRuns: tries(5000) },
  );
});

test("without replaceAll one place changes, of about the size that was asked for", () => {
  fc.assert(
    fc.property(text, anyEdit, (whole, edit) => {
      const outcome = applyEdit(whole, { ...edit, replaceAll: false });
      if (outcome.outcome !== "replaced") return;
      expect(outcome.spans).toHaveLength(1);
      const [span] = outcome.spans;
      const found = plain(whole.slice(span?.start, span?.end));
      const requested = edit.oldString.split("\n").length;
      expect(found.split("\n").length).toBeLessThan(Math.max(requested + 3, requested * 2) + 1);
      expect(found.length).toBeLessThanOrEqual(
        Math.max(edit.oldString.length + 500, edit.oldString.length * 4),
      );
    }),
    { numRuns: tries(5000) },
  );
});

test("finds a block with other indentation only where its words are", () => {
  const body = fc.array(fc.constantFrom("a = 1", "b(2)", "c"), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(
      lines(8),
      body,
      lines(8),
      fc.constantFrom("", "  ", "\t"),
      (before, middle, after, indent) => {
        const wanted = ["unique begin", ...middle.map((text) => `  ${text}`), "unique end"];
        const placed = wanted.map((text) => `    ${text}`);
        const whole = [...before, ...placed, ...after].join("\n");
        const oldString = wanted.map((text) => `${indent}${text}`).join("\n");
        const outcome = applyEdit(whole, { oldString, newString: `${indent}done` });
        const [first, last] = [before.length, before.length + placed.length];
        const result = shown(outcome).text?.split("\n") ?? [];
        expect(result.map((text) => text.trim())).toEqual(
          [...whole.split("\n").slice(0, first), "done", ...whole.split("\n").slice(last)].map((text) =>
            text.trim(),
          ),
        );
      },
    ),
    { numRuns: tries(1000) },
  );
});

function plain(text: string): string {
  return text.replaceAll("\r\n", "\n");
}

function shown(outcome: EditOutcome) {
  return outcome.outcome === "replaced"
    ? { strategy: outcome.strategy, text: outcome.text }
    : { text: undefined, outcome };
}
