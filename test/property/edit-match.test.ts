import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { applyEdit } from "../../src/tool/edit/edit-match.ts";
import type { EditOutcome } from "../../src/tool/edit/edit-match.ts";
import { plainPunctuation } from "../../src/tool/edit/match-source.ts";
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

test("nothing outside the spans changes", () => {
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

test("without replaceAll one place changes, about as long as the old text", () => {
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

test("finds a block with other indentation only if its words match", () => {
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

/** Blocks that differ in one line, with typical distortions by models. */
describe("in a file of similar blocks", () => {
  const indents = fc.constantFrom("", "  ", "    ", "\t", "\t\t");
  const body = fc.array(
    fc.constantFrom(
      "let sum = 0;",
      'say("it’s “new”");',
      "if (a) {",
      "}",
      "",
      "return sum;",
      "a — b",
      "x = y",
    ),
    { minLength: 1, maxLength: 4 },
  );
  const source = fc
    .record({
      indent: indents,
      bodies: fc.array(body, { minLength: 1, maxLength: 3 }),
      order: fc.array(fc.nat(), { minLength: 2, maxLength: 6 }),
      end: lineEnd,
    })
    .map(({ indent, bodies, order, end }) => {
      const blocks = order.map((pick, index) => {
        const inner = bodies[pick % bodies.length] ?? [];
        // Only some blocks have a name that no other has.
        const name = pick % 3 === 0 ? "same" : `name${index}`;
        return [`function ${name}() {`, ...inner.map((text) => `  ${text}`), "}"].map((text) =>
          text === "" ? text : `${indent}${text}`,
        );
      });
      return { blocks, end, text: blocks.map((lines) => lines.join(end)).join(end) };
    });

  const distortions: Readonly<Record<string, (text: string) => string>> = {
    none: (text) => text,
    "no indentation": (text) => text.replaceAll(/^[ \t]+/gm, ""),
    "other indentation": (text) => text.replaceAll(/^/gm, "      "),
    tabs: (text) => text.replaceAll(/^ {2}/gm, "\t"),
    spaces: (text) => text.replaceAll("\t", "    "),
    "blanks at the end": (text) => text.replaceAll(/$/gm, "  "),
    "other line ends": (text) =>
      text.includes("\r") ? text.replaceAll("\r\n", "\n") : text.replaceAll("\n", "\r\n"),
    "straight quotes": (text) => text.replaceAll(/[“”]/g, '"').replaceAll("’", "'"),
    "straight dashes": (text) => text.replaceAll("—", "-"),
    escapes: (text) => text.replaceAll('"', String.raw`\"`),
    "empty lines around": (text) => `\n${text}\n`,
    "no last line": (text) => text.split("\n").slice(0, -1).join("\n"),
    "a changed line": (text) => text.replace("sum", "total"),
  };
  const plainLines = (text: string) =>
    plainPunctuation(plain(text))
      .split("\n")
      .map((one) => one.trim())
      .filter((one) => one !== "");

  test.each(Object.keys(distortions))("%s: the block meant is changed, or none", (kind) => {
    const distort = distortions[kind] ?? String;
    fc.assert(
      fc.property(source, fc.nat(), ({ blocks, end, text }, pick) => {
        const target = pick % blocks.length;
        const own = (blocks[target] ?? []).join(end);
        const oldString = distort(own);
        fc.pre(oldString.trim() !== "");
        const outcome = applyEdit(text, { oldString, newString: "<<changed>>" });
        if (outcome.outcome !== "replaced") return;
        expect(outcome.spans).toHaveLength(1);
        const [span] = outcome.spans;
        if (outcome.strategy === "exact") {
          // The model's text occurs once, literally.
          expect(plain(text).split(plain(oldString))).toHaveLength(2);
          return;
        }
        const begin = blocks
          .slice(0, target)
          .reduce((sum, lines) => sum + lines.join(end).length + end.length, 0);
        const isWithin =
          span !== undefined && span.start >= begin && span.end <= begin + own.length + end.length;
        // Another block is the right place only if it has the same text.
        const found = text.slice(span?.start, span?.end);
        const copies = blocks.filter((lines) => lines.join("\n") === plain(own)).length;
        expect({ isWithin, found, copies }).toMatchObject({ isWithin: true, copies: 1 });
        // Nothing but the text of the block is removed.
        for (const line of plainLines(found)) expect(plainLines(own)).toContain(line);
      }),
      { numRuns: tries(5000) },
    );
  });
});
