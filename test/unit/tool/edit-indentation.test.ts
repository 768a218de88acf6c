import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { applyEdit } from "../../../src/tool/edit/edit-match.ts";
import { applyHunks } from "../../../src/tool/patch/patch-match.ts";
import { tries } from "../../support/run-length.ts";

/** The name of the case, the file, the old text, the new text, the file afterwards. */
type Case = readonly [shows: string, file: string, old: string, fresh: string, result: string];

function edited(file: string, oldString: string, newString: string): string {
  const outcome = applyEdit(file, { oldString, newString });
  return outcome.outcome === "replaced" ? outcome.text : outcome.outcome;
}

const python =
  "class A:\n    def f(self):\n        x = 1\n        return x\n\n    def g(self):\n        pass\n";
const tabs = "func f() {\n\tif x {\n\t\ty()\n\t}\n\tz()\n}\n";
const nested = "a:\n  b:\n    c: 1\n    d: 2\n  e: 3\n";

const emptyLines: readonly Case[] = [
  [
    "an empty first line that the file has not, shallower",
    "    line1\n    line2\n    line3\n",
    "\n  line1\n  line2\n",
    "  new_line1\n  new_line2\n",
    "    new_line1\n    new_line2\n    line3\n",
  ],
  ["an empty first line in both texts", "    a\n    b\n", "\n  a\n", "\n  x\n  y\n", "    x\n    y\n    b\n"],
  ["a blank first line", "    a\n    b\n", "  \n  a\n", "  x\n", "    x\n    b\n"],
  ["two empty first lines", "\ta\n\tb\n", "\n\na\n", "x\n", "\tx\n\tb\n"],
  ["an empty last line that the file has not", "    a\n    b\n", "  a\n\n", "  x\n\n", "    x\n    b\n"],
  ["an empty last line, the new text without", "    a\n    b\n", "  a\n\n", "  x\n", "    x\n    b\n"],
  ["an empty last line, the new text without newline", "    a\n    b\n", "  a\n\n", "  x", "    x\n    b\n"],
  ["empty lines around, new ones stay", "  a\n  b\n", "\na\n\n", "\n\nx\n\n\n", "\n  x\n\n  b\n"],
  ["empty lines around, lines are removed", "    a\n    b\n    c\n", "\n  a\n  b\n\n", "", "    c\n"],
  [
    "an empty line between that has blanks in the file",
    "  a\n  \n  b\n",
    "a\n\nb",
    "x\n\ny",
    "  x\n  \n  y\n",
  ],
  [
    "an empty line between that has blanks in the old text",
    "    a\n\n    b\n",
    "  a\n  \n  b\n",
    "  a\n  \n  c\n",
    "    a\n\n    c\n",
  ],
  [
    "an empty first line before other breaks between words",
    "    f(a,\n      b)\n",
    "\n  f(a, b)\n",
    "  f(a,\n    c)\n",
    "    f(a,\n      c)\n",
  ],
  [
    "an empty first line, the old text with other blanks",
    "    x  =  1\n    y = 2\n",
    "\n  x = 1\n",
    "  x = 3\n  z = 4\n",
    "    x = 3\n    z = 4\n    y = 2\n",
  ],
  ["an empty first line and tabs", "\t\ta\n\t\tb\n", "\n    a\n    b\n", "    x\n    b\n", "\t\tx\n\t\tb\n"],
  [
    "an empty first line and CRLF",
    "    a\r\n    b\r\n",
    "\r\n  a\r\n",
    "  x\r\n  y\r\n",
    "    x\r\n    y\r\n    b\r\n",
  ],
  [
    "an empty first line that the file has",
    "a\n\n    b\n    c\n",
    "\n  b\n",
    "\n  x\n",
    "a\n\n    x\n    c\n",
  ],
];

const shifted: readonly Case[] = [
  [
    "shallower, a line replaced",
    python,
    "def f(self):\n    x = 1",
    "def f(self):\n    x = 2",
    python.replace("x = 1", "x = 2"),
  ],
  [
    "shallower, lines added deeper",
    python,
    "x = 1\nreturn x\n",
    "if a:\n    x = 1\nreturn x\n",
    python.replace("        x = 1", "        if a:\n            x = 1"),
  ],
  [
    "shallower by a part, a line added shallower than all",
    "    if a:\n        b\n        c\n",
    "    b\n    c\n",
    "    b\nelse:\n    c\n",
    "    if a:\n        b\n    else:\n        c\n",
  ],
  ["deeper", "a\n  b\n", "    a\n      b\n", "    a\n      c\n", "a\n  c\n"],
  [
    "deeper, a line added shallower than the edge",
    "a\nb\n",
    "    a\n    b\n",
    "    a\n  x\n    c\n",
    "a\nx\nc\n",
  ],
  ["deeper with tabs", "\ta\n\t\tb\n", "\t\t\ta\n\t\t\t\tb\n", "\t\t\ta\n\t\t\t\t\tc\n", "\ta\n\t\t\tc\n"],
  ["one line deeper, with a blank at its end", "    a\n    b\n", "  a \n", "  x\n", "    x\n    b\n"],
  [
    "aligned arguments",
    "    f(a,\n      b)\n",
    "f(a,\n  b)",
    "f(a,\n  c,\n  d)",
    "    f(a,\n      c,\n      d)\n",
  ],
  [
    "a block wrapped",
    "    a\n    b\n",
    "a\nb\n",
    "try:\n    a\n    b\nfinally:\n    c\n",
    "    try:\n        a\n        b\n    finally:\n        c\n",
  ],
  [
    "a block unwrapped",
    "    if x:\n        a\n        b\n",
    "if x:\n    a\n    b\n",
    "a\nb\n",
    "    a\n    b\n",
  ],
  [
    "lines indented by one level only",
    "    a\n    b\n",
    "a\nb\n",
    "    a\n    b\n",
    "        a\n        b\n",
  ],
  [
    "the new text as the file, the old one not",
    "    a\n    b\n    c\n",
    "a\nb\nc",
    "    a\n    x\n    c",
    "    a\n    x\n    c\n",
  ],
  [
    "a part of nested data",
    nested,
    "b:\n  c: 1\n  d: 2",
    "b:\n  c: 1\n  f:\n    g: 4\n  d: 2",
    nested.replace("    d: 2", "    f:\n      g: 4\n    d: 2"),
  ],
  ["CRLF", "  a\r\n    b\r\n  c\r\n", "a\n  b\n", "a\n  x\n  y\n", "  a\r\n    x\r\n    y\r\n  c\r\n"],
  ["the last line without a newline", "  a\n    b", "a\n  b\n", "a\n  c\n", "  a\n    c\n"],
  ["trailing blanks of lines that stay", "  a  \n  b\n  c\n", "a\nb", "a\nx", "  a  \n  x\n  c\n"],
];

const otherUnits: readonly Case[] = [
  [
    "blanks for tabs",
    tabs,
    "    if x {\n        y()\n    }",
    "    if x {\n        w()\n    }",
    tabs.replace("y", "w"),
  ],
  [
    "blanks for tabs, a deeper line added",
    tabs,
    "    if x {\n        y()\n    }\n",
    "    if x {\n        if w {\n            y()\n        }\n    }\n",
    tabs.replace("\t\ty()", "\t\tif w {\n\t\t\ty()\n\t\t}"),
  ],
  [
    "two blanks for tabs",
    tabs,
    "  if x {\n    y()\n  }\n",
    "  if x {\n    y()\n      w()\n  }\n",
    tabs.replace("y()", "y()\n\t\t\tw()"),
  ],
  [
    "two blanks for four",
    "if a:\n    if b:\n        c\n",
    "if a:\n  if b:\n    c\n",
    "if a:\n  if b:\n    if d:\n      c\n",
    "if a:\n    if b:\n        if d:\n            c\n",
  ],
  [
    "four blanks for two",
    nested,
    "a:\n    b:\n        c: 1\n        d: 2",
    "a:\n    b:\n        c: 1\n        f:\n            g: 4",
    nested.replace("d: 2", "f:\n      g: 4"),
  ],
  [
    "tabs for blanks",
    "    if x:\n        y\n",
    "\tif x:\n\t\ty\n",
    "\tif x:\n\t\tif z:\n\t\t\ty\n",
    "    if x:\n        if z:\n            y\n",
  ],
  [
    "tabs for two blanks",
    "  if x\n    y\n",
    "\tif x\n\t\ty\n",
    "\tif x\n\t\tif z\n\t\t\ty\n",
    "  if x\n    if z\n      y\n",
  ],
  [
    "one depth of blanks for a tab, deeper added",
    "\ta\n\tb\n",
    "    a\n    b\n",
    "    if a\n        b\n",
    "\tif a\n\t\tb\n",
  ],
  [
    "one depth of blanks for two tabs, shallower added",
    "\t\ta\n\t\tb\n",
    "        a\n        b\n",
    "        a\n    }\n",
    "\t\ta\n\t}\n",
  ],
  [
    "one depth of a tab for blanks, deeper added",
    "    a\n    b\n",
    "\ta\n\tb\n",
    "\tif a\n\t\tb\n",
    "    if a\n        b\n",
  ],
  [
    "no indentation for a tab, blanks added",
    "\ta\n\tb\n",
    "a\nb\n",
    "if a\n    b\nc\n",
    "\tif a\n\t\tb\n\tc\n",
  ],
  [
    "no indentation for blanks, a tab added",
    "    a\n    b\n",
    "a\nb\n",
    "if a\n\tb\nc\n",
    "    if a\n        b\n    c\n",
  ],
  [
    "tabs and blanks mixed in the file",
    "\ta(\n\t  b)\n",
    "    a(\n      b)\n",
    "    a(\n      c)\n",
    "\ta(\n\t  c)\n",
  ],
  ["CRLF and tabs", "\ta\r\n\t\tb\r\n", "  a\n    b\n", "  a\n    c\n    d\n", "\ta\r\n\t\tc\r\n\t\td\r\n"],
];

const lostFirst: readonly Case[] = [
  [
    "all lines of the new text lost it",
    "    a\n    b\n    c\n",
    "a\n    b\n    c",
    "x\ny\nz",
    "    x\n    y\n    z\n",
  ],
  ["all lines of the new text lost it, with tabs", "\ta\n\tb\n", "a\n\tb", "x\ny", "\tx\n\ty\n"],
  ["and CRLF", "    a\r\n    b\r\n", "a\r\n    b", "x\r\ny", "    x\r\n    y\r\n"],
  [
    "a shared line says that all lost it",
    "    if a:\n        b\n    c\n",
    "if a:\n        b\n    c",
    "if a:\n    x\nc",
    "    if a:\n        x\n    c\n",
  ],
  [
    "flat, of two depths",
    "    if a:\n        b\n    c\n",
    "if a:\n        b\n    c",
    "if a:\nx\nc",
    "    if a:\n        x\n    c\n",
  ],
  [
    "the rest as in the file",
    "    if a:\n        b\n",
    "if a:\n        b",
    "if a:\n        x\n    else:\n        y",
    "    if a:\n        x\n    else:\n        y\n",
  ],
  [
    "the rest as in the file, with other blanks",
    "    if a:\n        b  \n",
    "if a:\n        b\n",
    "if a:\n        x\n    else:\n        y\n",
    "    if a:\n        x\n    else:\n        y\n",
  ],
  [
    "the rest shifted",
    "        if a:\n            b\n        c\n",
    "if a:\n        b\n    c\n",
    "if d:\n        b\n    e\n",
    "        if d:\n            b\n        e\n",
  ],
  [
    "the new text ends what is open",
    "    a();\n    b();\n}\n",
    "a();\n    b();\n}",
    "a();\n}\nc();",
    "    a();\n}\nc();\n",
  ],
  [
    "a line that leaves the block",
    "def f():\n    x\n    return y\n",
    "x\n    return y",
    "x\n    return z\n\ndef g():\n    pass",
    "def f():\n    x\n    return z\n\ndef g():\n    pass\n",
  ],
  ["one line only", "    a\n", "a", "x\ny", "    x\ny\n"],
  ["in the middle of a line", "x = f(a,\n    b)\n", "f(a,\n    b)", "g(a)\nh()", "x = g(a)\nh()\n"],
];

const lostEverywhere: readonly Case[] = [
  [
    "a Python body, a line replaced",
    python,
    "def f(self):\nx = 1\nreturn x",
    "def f(self):\nx = 2\nreturn x",
    python.replace("x = 1", "x = 2"),
  ],
  [
    "a Python body, a line added",
    python,
    "def f(self):\nx = 1\nreturn x",
    "def f(self):\nx = 1\ny = 2\nreturn x",
    python.replace("x = 1\n", "x = 1\n        y = 2\n"),
  ],
  [
    "a Python body, a line added on top",
    python,
    "def f(self):\nx = 1\nreturn x",
    "def f(self):\nw = 0\nx = 1\nreturn x",
    python.replace("x = 1\n", "w = 0\n        x = 1\n"),
  ],
  [
    "a Python body, a line removed",
    python,
    "def f(self):\nx = 1\nreturn x",
    "def f(self):\nreturn x",
    python.replace("        x = 1\n", ""),
  ],
  [
    "a Python body, one line becomes two",
    python,
    "def f(self):\nx = 1\nreturn x",
    "def f(self):\nx = 2\ny = 3\nreturn x",
    python.replace("x = 1\n", "x = 2\n        y = 3\n"),
  ],
  [
    "a Python body, the new text has it",
    python,
    "def f(self):\nx = 1\nreturn x",
    "def f(self):\n    x = 2\n    return x",
    python.replace("x = 1", "x = 2"),
  ],
  [
    "a Python body, the new text as the file",
    python,
    "def f(self):\nx = 1\nreturn x",
    "    def f(self):\n        x = 2\n        return x",
    python.replace("x = 1", "x = 2"),
  ],
  [
    "across an empty line",
    python,
    "return x\n\ndef g(self):\npass",
    "return x\n\ndef g(self):\nreturn 1",
    python.replace("pass", "return 1"),
  ],
  ["braces with tabs", tabs, "if x {\ny()\n}\nz()", "if x {\nw()\n}\nz()", tabs.replace("y()", "w()")],
  [
    "braces with tabs, the first line replaced",
    tabs,
    "if x {\ny()\n}",
    "if w {\ny()\n}",
    tabs.replace("x", "w"),
  ],
  ["nested data", nested, "b:\nc: 1\nd: 2\ne: 3", "b:\nc: 1\nd: 5\ne: 3", nested.replace("2", "5")],
  [
    "CRLF",
    python.replaceAll("\n", "\r\n"),
    "def f(self):\nx = 1\nreturn x",
    "def f(self):\nx = 2\nreturn x",
    python.replace("x = 1", "x = 2").replaceAll("\n", "\r\n"),
  ],
  [
    "one line that lost more than the others",
    "    a\n        b\n        c\n    d\n",
    "    a\n        b\n    c\n    d\n",
    "    a\n        b\n    x\n    d\n",
    "    a\n        b\n        x\n    d\n",
  ],
  ["blanks at the edge of one depth", "    a\n    b\n", "a\n b\n", "a\n c\n", "    a\n    c\n"],
];

describe.each([
  ["empty lines around the old text", emptyLines],
  ["old text that is shifted", shifted],
  ["old text with another unit", otherUnits],
  ["old text whose first line lost its indentation", lostFirst],
  ["old text that lost its indentation", lostEverywhere],
])("%s", (_, cases) => {
  test.each(cases)("%s", (_shows, file, old, fresh, result) => {
    expect(edited(file, old, fresh)).toBe(result);
  });
});

test.each(lostEverywhere)(
  "a patch gives new lines the same indentation: %s",
  (_shows, file, old, fresh, result) => {
    const lines = (kind: "remove" | "insert", text: string) =>
      text
        .replace(/\n$/, "")
        .split("\n")
        .map((line) => ({ kind, text: line }));
    const hunk = { anchors: [], atEnd: false, lines: [...lines("remove", old), ...lines("insert", fresh)] };
    const end = file.includes("\r\n") ? "\r\n" : "\n";
    expect(applyHunks(file, [hunk], end).text).toBe(result);
  },
);

const word = fc.constantFrom("a", "b(c)", "if d:", "else:", "}", "return e", "f = {");
const depths = fc.array(fc.tuple(fc.integer({ min: 0, max: 3 }), word), { minLength: 1, maxLength: 5 });
const block = depths.map((lines) => [[0, "first line"] as const, ...lines, [0, "last line"] as const]);
const written = (lines: readonly (readonly [number, string])[], edge: string, unit: string) =>
  lines.map(([depth, text]) => `${edge}${unit.repeat(depth)}${text}`);
const edges = fc.constantFrom("", "  ", "    ", "        ", "\t", "\t\t");

test("a uniform change of indentation leads to the same edit", () => {
  fc.assert(
    fc.property(
      fc.record({
        old: block,
        fresh: block,
        above: fc.array(word, { maxLength: 3 }),
        below: fc.array(word, { maxLength: 3 }),
        fileEdge: edges,
        writtenEdge: edges,
        unit: fc.constantFrom("  ", "    ", "\t"),
        end: fc.constantFrom("\n", "\r\n"),
        blankAbove: fc.boolean(),
      }),
      ({ old, fresh, above, below, fileEdge, writtenEdge, unit, end, blankAbove }) => {
        fc.pre(new Set(fileEdge + writtenEdge + unit).size === 1);
        const around = (lines: readonly string[]) => [...above, ...lines, ...below, ""].join(end);
        const newLines = [[0, "new line"] as const, ...fresh];
        const blank = blankAbove ? "\n" : "";
        const result = edited(
          around(written(old, fileEdge, unit)),
          blank + written(old, writtenEdge, unit).join("\n"),
          blank + written(newLines, writtenEdge, unit).join("\n"),
        );
        expect(result).toBe(around(written(newLines, fileEdge, unit)));
      },
    ),
    { numRuns: tries(3000) },
  );
});

test("another unit of indentation leads to the same edit", () => {
  const units = fc.uniqueArray(fc.constantFrom("  ", "    ", "\t"), { minLength: 2, maxLength: 2 });
  fc.assert(
    fc.property(units, block, block, ([fileUnit = "", writtenUnit = ""], old, fresh) => {
      const deeper = [...old.slice(0, -1), [1, "deeper line"] as const, [0, "last line"] as const];
      const result = edited(
        written(deeper, "", fileUnit).join("\n"),
        written(deeper, "", writtenUnit).join("\n"),
        written(fresh, "", writtenUnit).join("\n"),
      );
      expect(result).toBe(written(fresh, "", fileUnit).join("\n"));
    }),
    { numRuns: tries(1000) },
  );
});
