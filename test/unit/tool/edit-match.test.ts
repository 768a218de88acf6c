import { expect, test } from "vitest";
import { applyEdit } from "../../../src/tool/edit/edit-match.ts";
import type { EditOutcome } from "../../../src/tool/edit/edit-match.ts";
import { processorMs } from "../../support/program/processor-time.ts";

const edit = (text: string, oldString: string, newString: string, replaceAll = false) =>
  short(applyEdit(text, { oldString, newString, replaceAll }));

/** The outcome without the spans. */
function short(outcome: EditOutcome) {
  if (outcome.outcome !== "replaced") return outcome;
  const { text, strategy } = outcome;
  return { text, strategy };
}

test("text that occurs exactly is replaced, and nothing else", () => {
  expect(applyEdit("one two three", { oldString: "two", newString: "2" })).toEqual({
    outcome: "replaced",
    text: "one 2 three",
    strategy: "exact",
    spans: [{ start: 4, end: 7 }],
  });
});

test("text in several places is ambiguous, with the lines", () => {
  expect(edit("a\nb\na\n", "a", "c")).toEqual({
    outcome: "ambiguous",
    strategy: "exact",
    lines: [1, 3],
    more: false,
  });
});

test("places that overlap are several places", () => {
  expect(edit("aaa", "aa", "b")).toMatchObject({ outcome: "ambiguous" });
});

test("all places are replaced on demand", () => {
  expect(edit("a\nb\na\n", "a", "c", true)).toEqual({ text: "c\nb\nc\n", strategy: "exact" });
});

test("a dollar sign in the new text is literal", () => {
  expect(edit("price", "price", "$& $1 $$")).toEqual({ text: "$& $1 $$", strategy: "exact" });
});

test("a file with CRLF keeps it, around the edit and in it", () => {
  expect(edit("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz")).toEqual({
    text: "x\r\ny\r\nz\r\nc\r\n",
    strategy: "exact",
  });
  expect(edit("a\r\nb\r\nc\r\n", "b\r\n", "")).toEqual({ text: "a\r\nc\r\n", strategy: "exact" });
});

test("a file with mixed line endings changes only at the edit", () => {
  expect(edit("a\r\nb\nc\nd\n", "b\nc", "x\ny")).toEqual({ text: "a\r\nx\ny\nd\n", strategy: "exact" });
});

test("finds a block with deeper indentation, and indents the new text like it", () => {
  const text = "class A {\n    f() {\n        return 1;\n    }\n}\n";
  expect(
    edit(
      text,
      "f() {\n    return 1;\n}",
      "f() {\n    const x = 2;\n    if (x) {\n        return x;\n    }\n}",
    ),
  ).toEqual({
    text: "class A {\n    f() {\n        const x = 2;\n        if (x) {\n            return x;\n        }\n    }\n}\n",
    strategy: "indentation",
  });
});

test("blanks that become tabs become tabs in the new text too", () => {
  const text = "\tif x {\n\t\ty()\n\t}\n";
  expect(edit(text, "    if x {\n        y()\n    }", "    if x {\n        z()\n        y()\n    }")).toEqual(
    {
      text: "\tif x {\n\t\tz()\n\t\ty()\n\t}\n",
      strategy: "trimmed lines",
    },
  );
});

test("blanks at the ends of lines are ignored", () => {
  expect(edit("a  \nb\nc\n", "a\nb\n", "x\n")).toEqual({ text: "x\nc\n", strategy: "indentation" });
});

test("the stricter comparison decides between two places", () => {
  const text = "if a:\n  b\n\nif a:\n      b\n";
  expect(edit(text, "    if a:\n      b", "    if a:\n      c")).toEqual({
    text: "if a:\n  c\n\nif a:\n      b\n",
    strategy: "indentation",
  });
});

test("blanks around the old text are ignored", () => {
  expect(edit("call(one, two)", "\n one\n", "\n three\n")).toEqual({
    text: "call(three, two)",
    strategy: "trimmed boundary",
  });
});

test("a tolerant match never begins or ends in the middle of a word", () => {
  expect(edit("contest", " test ", "x")).toEqual({ outcome: "missing" });
});

test("runs of blanks count as one", () => {
  expect(edit("    const  a   =  1;\n", "const a = 1;", "const a = 2;")).toEqual({
    text: "    const a = 2;\n",
    strategy: "whitespace",
  });
  expect(edit("x = f(a,\n      b); y\n", "f(a, b)", "g(a)")).toEqual({
    text: "x = g(a); y\n",
    strategy: "whitespace",
  });
});

test("a text escaped once too often is found, and the new text is unescaped too", () => {
  expect(edit('say("hi")\nbye()\n', 'say(\\"hi\\")\\nbye()', 'say(\\"ho\\")\\nbye()')).toEqual({
    text: 'say("ho")\nbye()\n',
    strategy: "escapes",
  });
  expect(edit('say("hi")\nbye()\n', 'say(\\"hi\\")\nbye()', 'say(\\"a\\nb\\")')).toEqual({
    text: 'say("a\\nb")\n',
    strategy: "escapes",
  });
});

const block = (middle: string) => `function sum(list) {\n${middle}\n  return total;\n}\n`;

test("a block is found by its first and last line if the lines between are similar", () => {
  const text = `start();\n${block("  let total = 0; // the sum\n  for (const x of list) total += x;")}end();\n`;
  const wanted =
    "function sum(list) {\n  let total = 0;\n  for (const x of list) total += x;\n  return total;\n}";
  expect(edit(text, wanted, "const sum = fast;")).toEqual({
    text: "start();\nconst sum = fast;\nend();\n",
    strategy: "block anchors",
  });
});

test("two similar blocks are ambiguous, also with replaceAll", () => {
  const text = block("  let total = 0; // one") + block("  let total = 0; // two");
  const wanted = block("  let total = 0; //").trimEnd();
  expect(edit(text, wanted, "x", true)).toEqual({
    outcome: "ambiguous",
    strategy: "block anchors",
    lines: [1, 5],
    more: false,
  });
});

test("a block is found by its context if half of the lines between are the same", () => {
  const text = "begin alpha\n  one\n  entirely different from what was asked for here\nend alpha\n";
  expect(edit(text, "begin alpha\n  one\n  two\nend alpha", "done")).toEqual({
    text: "done\n",
    strategy: "context",
  });
});

test("a block with different lines between is missing", () => {
  const text = "begin alpha\n  entirely\n  different lines\nend alpha\n";
  expect(edit(text, "begin alpha\n  one\n  two\nend alpha", "done")).toEqual({ outcome: "missing" });
});

test("brackets alone do not identify a block", () => {
  expect(edit("{\n  a: 1,\n  b: 2\n}\n", "{\n  a: 1,\n  b: 3\n}", "x")).toEqual({ outcome: "missing" });
});

test("a match that covers much more than the old text is rejected", () => {
  const text = `first${"\n".repeat(9)}second\n`;
  expect(edit(text, "first second", "x")).toEqual({ outcome: "oversized", line: 1 });
});

test("blank text is only found exactly, and empty text never", () => {
  expect(edit("a\t\nb", "   \n", "x")).toEqual({ outcome: "missing" });
  expect(edit("a", "", "x")).toEqual({ outcome: "missing" });
});

test("searches repetitive text in moderate time, even for a long old text", () => {
  const begin = performance.now();
  const same = "x\n".repeat(1_000_000);
  const missing = { outcome: "missing" };
  expect(edit(same, `${"x\n".repeat(50_000)}z`, "y")).toEqual(missing);
  expect(edit(" x\n".repeat(1_000_000), "x\nx\nx", "y")).toMatchObject({ outcome: "ambiguous", more: true });
  expect(edit("a ".repeat(1_000_000), `${"a  ".repeat(500)}b`, "y")).toEqual(missing);
  const middle = "some words of a long line\n".repeat(700);
  const blocks = `begin\n${middle}end\n`.repeat(300);
  expect(edit(blocks, `begin\nother\n${middle}end`, "y")).toEqual(missing);
  expect(edit(same, "x", "y", true)).toEqual({ outcome: "tooMany" });
  expect(performance.now() - begin).toBeLessThan(10_000);
});

test("a large file is searched with every strategy in moderate time", () => {
  const text = Array.from({ length: 50_000 }, (_, index) => `  item ${index % 7} {\n  }\n`).join("");
  const ms = processorMs(() =>
    expect(edit(text, "item 3 {\n  nothing like it\n}", "x")).toEqual({ outcome: "missing" }),
  );
  expect(ms).toBeLessThan(3_000);
});
