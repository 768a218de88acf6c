import * as fc from "fast-check";
import { expect, test } from "vitest";
import { applyHunks } from "../../src/tool/patch/patch-match.ts";
import { parsePatch } from "../../src/tool/patch/patch.ts";
import type { FilePatch, HunkLine } from "../../src/tool/patch/patch.ts";
import { ToolFailure } from "../../src/tool/tool.ts";
import { tries } from "../support/run-length.ts";

const patchLine = fc.constantFrom(
  "*** Begin Patch",
  "*** End Patch",
  "*** Add File: a",
  "*** Update File: b",
  "*** Delete File: c",
  "*** Move to: d",
  "*** End of File",
  "@@",
  "@@ x",
  "@@ -1,2 +3 @@ x",
  "+new",
  "-x",
  " x",
  "  x",
  "x",
  "",
  "-",
  "+",
  " ",
);
const anyPatch = fc.oneof(
  fc.string(),
  fc.array(fc.oneof({ weight: 9, arbitrary: patchLine }, fc.string())).map((lines) => lines.join("\n")),
  fc
    .array(patchLine)
    .map((lines) => ["*** Begin Patch", "*** Update File: b", ...lines, "*** End Patch"].join("\n")),
);
const fileLine = fc.constantFrom("x", "  x", "x  ", "y", "new", "", "\tz", "\u201Cx\u201D");
const fileText = fc
  .tuple(fc.array(fileLine, { maxLength: 12 }), fc.constantFrom("\n", "\r\n"), fc.boolean())
  .map(([lines, end, isEnded]) => lines.join(end) + (isEnded ? end : ""));

test("any text is a patch or rejected with an explanation, as is each hunk on any file", () => {
  fc.assert(
    fc.property(anyPatch, fileText, (patchText, text) => {
      for (const patch of orRefused(() => parsePatch(patchText)) ?? []) {
        if (patch.kind === "update") orRefused(() => applyHunks(text, patch.hunks, "\n"));
      }
    }),
    { numRuns: tries(5000) },
  );
});

test("a patch is parsed to what was written", () => {
  const text = fc.stringMatching(/^[a-z@*+ -]{0,8}$/);
  const line = fc.record({ kind: fc.constantFrom("keep", "remove", "insert"), text });
  const hunk = fc.record({
    anchors: fc.array(fc.stringMatching(/^[a-z]{1,5}$/), { maxLength: 2 }),
    lines: fc.array(line as fc.Arbitrary<HunkLine>, { minLength: 1, maxLength: 5 }),
    atEnd: fc.boolean(),
  });
  const changing = hunk.filter(({ lines }) => lines.some(({ kind }) => kind !== "keep"));
  const path = fc.stringMatching(/^[a-z/.]{1,8}$/);
  const file: fc.Arbitrary<FilePatch> = fc.oneof(
    fc.record({
      kind: fc.constant("add" as const),
      path,
      text: fc.array(text).map((lines) => lines.map((line) => `${line}\n`).join("")),
    }),
    fc.record({ kind: fc.constant("delete" as const), path }),
    fc.record({
      kind: fc.constant("update" as const),
      path,
      hunks: fc.array(changing, { minLength: 1, maxLength: 3 }),
    }),
  );
  fc.assert(
    fc.property(
      fc.uniqueArray(file, { minLength: 1, maxLength: 4, selector: ({ path }) => path }),
      (files) => {
        expect(parsePatch(written(files))).toEqual(files);
      },
    ),
    { numRuns: tries(1000) },
  );
});

test("a hunk with enough of its surroundings changes its own place and nothing else", () => {
  const lines = fc.array(fileLine, { maxLength: 10 });
  fc.assert(
    fc.property(lines, lines, lines, fc.constantFrom("\n", "\r\n"), (before, added, after, end) => {
      const text = [...before, "<<only here>>", ...after].join(end);
      const hunk = {
        anchors: [],
        atEnd: false,
        lines: [
          { kind: "remove" as const, text: "<<only here>>" },
          ...added.map((line) => ({ kind: "insert" as const, text: line })),
        ],
      };
      const expected = [...before, ...added, ...after];
      // If no line follows, the last remaining line keeps the missing newline.
      expect(applyHunks(text, [hunk], end).text.split(end)).toEqual(expected.length === 0 ? [""] : expected);
    }),
    { numRuns: tries(1000) },
  );
});

test("the lines that a hunk removes were there, at least their words", () => {
  fc.assert(
    fc.property(fileText, fc.array(fileLine, { minLength: 1, maxLength: 3 }), (text, removed) => {
      const lines = removed.map((line) => ({ kind: "remove" as const, text: line }));
      const done = orRefused(() => applyHunks(text, [{ anchors: [], lines, atEnd: false }], "\n"));
      if (done === undefined) return;
      const words = (list: readonly string[]) =>
        list.map((line) => line.replaceAll(/[\s"\u201C\u201D]/g, ""));
      const rest = words(done.text.split(/\r?\n/));
      const whole = words(text.split(/\r?\n/));
      const taken = words(removed);
      const places = whole.map((_, at) => [...whole.slice(0, at), ...whole.slice(at + taken.length)]);
      const trimmed = (list: readonly string[]) => list.join("\n").replace(/\n$/, "");
      expect(places.map(trimmed)).toContain(trimmed(rest));
    }),
    { numRuns: tries(2000) },
  );
});

function orRefused<T>(task: () => T): T | undefined {
  try {
    return task();
  } catch (error) {
    expect(error).toBeInstanceOf(ToolFailure);
    return undefined;
  }
}

const marks = { keep: " ", remove: "-", insert: "+" };

function written(files: readonly FilePatch[]): string {
  return ["*** Begin Patch", ...files.flatMap(writtenFile), "*** End Patch"].join("\n");
}

function writtenFile(file: FilePatch): string[] {
  switch (file.kind) {
    case "add":
      return [
        `*** Add File: ${file.path}`,
        ...file.text
          .split("\n")
          .slice(0, -1)
          .map((line) => `+${line}`),
      ];
    case "delete":
      return [`*** Delete File: ${file.path}`];
    case "update":
      return [
        `*** Update File: ${file.path}`,
        ...file.hunks.flatMap(({ anchors, lines, atEnd }) => [
          ...(anchors.length === 0 ? ["@@"] : anchors.map((anchor) => `@@ ${anchor}`)),
          ...lines.map(({ kind, text }) => `${marks[kind]}${text}`),
          ...(atEnd ? ["*** End of File"] : []),
        ]),
      ];
  }
}
