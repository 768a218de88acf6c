import { rm } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { editTool } from "../../src/tool/edit/edit.ts";
import { writeTool } from "../../src/tool/edit/write.ts";
import { readTool } from "../../src/tool/read/read.ts";
import { sha256 } from "../../src/base/text/hash.ts";
import { call, description, prepare, run, toolPlace } from "./tool-place.ts";
import type { ToolPlace } from "./tool-place.ts";

const read = (filePath: string, place: ToolPlace) => call(readTool, { filePath }, place);
const hashOf = (text: string) => sha256(Buffer.from(text));

test("replaces a piece of text, and the answer shows the place", async () => {
  await using place = await toolPlace({ "src/a.ts": "1\n2\n3\n4\n5\n6\n" });
  await read("src/a.ts", place);
  expect(
    await call(editTool, { filePath: "src/a.ts", oldString: "4\n", newString: "four\nand more\n" }, place),
  ).toEqual({
    status: "completed",
    output: "Changed src/a.ts (+2 -1 lines).\n\n2: 2\n3: 3\n4: four\n5: and more\n6: 5\n7: 6",
    changes: [
      {
        path: place.path("src/a.ts"),
        operation: "update",
        before: hashOf("1\n2\n3\n4\n5\n6\n"),
        after: hashOf("1\n2\n3\nfour\nand more\n5\n6\n"),
        additions: 2,
        deletions: 1,
      },
    ],
  });
  expect(await place.text("src/a.ts")).toBe("1\n2\n3\nfour\nand more\n5\n6\n");
});

test("the question shows the whole texts before and after, and nothing has changed yet", async () => {
  await using place = await toolPlace({ a: "one\ntwo\n" });
  await read("a", place);
  const described = await description(editTool, { filePath: "a", oldString: "two", newString: "2" }, place);
  expect(described).toEqual({
    title: "Edit a",
    kind: "edit",
    locations: [{ path: place.path("a"), line: 2 }],
    preview: { diffs: [{ path: place.path("a"), oldText: "one\ntwo\n", newText: "one\n2\n" }] },
    permissions: [
      { permission: "edit", subjects: [{ text: "a", also: [place.rulePath("a")] }], always: ["a"] },
    ],
  });
  expect(await place.text("a")).toBe("one\ntwo\n");
});

test("the answer says that new text without indentation got the file's", async () => {
  await using place = await toolPlace({ a: "if x:\n    a\n    b\n" });
  await read("a", place);
  const { output } = await call(editTool, { filePath: "a", oldString: "a\n    b", newString: "c\nd" }, place);
  expect(output).toBe(
    "Changed a (+2 -2 lines). newString had no indentation and was given that of the lines it replaces: check the result.\n\n" +
      "1: if x:\n2:     c\n3:     d",
  );
});

test("reports a tolerant match", async () => {
  await using place = await toolPlace({ a: "if (x) {\n\treturn 1;\n}\n" });
  await read("a", place);
  const { output } = await call(
    editTool,
    { filePath: "a", oldString: "  return  1;", newString: "  return 2;" },
    place,
  );
  expect(output).toBe(
    "Changed a (+1 -1 lines). oldString was not found exactly; it was matched by whitespace: check the result.\n\n" +
      "1: if (x) {\n2: \treturn 2;\n3: }",
  );
});

test.each([
  [
    { oldString: "none", newString: "x" },
    "oldString not found in file. No line of the file is like it. Look",
  ],
  [{ oldString: "1: one\n2: two", newString: "x" }, "line numbers that read shows: leave them out"],
  [
    { oldString: "one", newString: "x" },
    "oldString was found in 2 places (line 1, 3). Give more of the text around",
  ],
  [{ oldString: "one", newString: "one" }, "oldString and newString are the same."],
  [{ oldString: "", newString: "x" }, "oldString is empty, but the file exists."],
])("an edit that does not fit fails with the next step: %j", async (edit, message) => {
  await using place = await toolPlace({ a: "one\ntwo\none\n" });
  await read("a", place);
  await expect(prepare(editTool, { filePath: "a", ...edit }, place)).rejects.toThrow(message);
  expect(await place.text("a")).toBe("one\ntwo\none\n");
});

test("many places are listed up to a limit", async () => {
  await using place = await toolPlace({ a: "x\n".repeat(300) });
  await read("a", place);
  await expect(prepare(editTool, { filePath: "a", oldString: "x", newString: "y" }, place)).rejects.toThrow(
    "oldString was found in more than 100 places (line 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and others).",
  );
});

test("an empty old text creates a new file", async () => {
  await using place = await toolPlace();
  const { output } = await call(editTool, { filePath: "new/a", oldString: "", newString: "text\n" }, place);
  expect({ output, text: await place.text("new/a") }).toEqual({
    output: "Created new/a (+1 -0 lines).",
    text: "text\n",
  });
});

test("reports missing files and folders", async () => {
  await using place = await toolPlace({ "d/name.ts": "" });
  const edit = { oldString: "a", newString: "b" };
  await expect(prepare(editTool, { filePath: "d/nam.ts", ...edit }, place)).rejects.toThrow(
    "Did you mean d/name.ts?",
  );
  await expect(prepare(editTool, { filePath: "d", ...edit }, place)).rejects.toThrow("d is a folder.");
});

test("byte order mark, line endings and encoding are preserved", async () => {
  await using place = await toolPlace({
    crlf: Buffer.from("\uFEFFone\r\ntwo\r\n"),
    utf16: Buffer.from("\uFEFFone\r\ntwo\r\n", "utf16le"),
    latin1: Buffer.from("ä\none\ntwo\n", "latin1"),
  });
  for (const filePath of ["crlf", "utf16", "latin1"]) {
    await read(filePath, place);
    await call(editTool, { filePath, oldString: "one\ntwo", newString: "zwölf\n2" }, place);
  }
  expect(await place.bytes("crlf")).toEqual(Buffer.from("\uFEFFzwölf\r\n2\r\n"));
  expect(await place.bytes("utf16")).toEqual(Buffer.from("\uFEFFzwölf\r\n2\r\n", "utf16le"));
  expect(await place.bytes("latin1")).toEqual(Buffer.from("ä\nzwölf\n2\n", "latin1"));
});

const unknownTexts: readonly (readonly [string, object])[] = [
  ["a tolerant match", { oldString: "  total  = 1", newString: "total = 2" }],
  ["signs only", { oldString: "}", newString: "]" }],
  ["every place", { oldString: "x", newString: "y", replaceAll: true }],
  ["several places", { oldString: "x", newString: "y" }],
  ["a text that is not there", { oldString: "none", newString: "x" }],
];

describe("a file that was not read", () => {
  const files = { a: "x\ntotal = 1\nx\n}\n" };

  test.each(unknownTexts)("is not edited by %s", async (_, edit) => {
    await using place = await toolPlace(files);
    const prepared = await prepare(editTool, { filePath: "a", ...edit }, place);
    // Only a model that may read the file learns its content.
    expect(prepared.permissions).toMatchObject([{ permission: "read", subjects: [{ text: "a" }] }]);
    await expect(run(prepared, place)).rejects.toThrow("was not read in this session. Read it first.");
    expect(await place.text("a")).toBe(files.a);
  });

  test.each(unknownTexts)("is not edited by %s if it changed since the read", async (_, edit) => {
    await using place = await toolPlace({ a: "old\n" });
    await read("a", place);
    await place.write(files);
    const prepared = await prepare(editTool, { filePath: "a", ...edit }, place);
    await expect(run(prepared, place)).rejects.toThrow("was changed since it was read. Read it again");
    expect(await place.text("a")).toBe(files.a);
  });

  test("is edited by exact, unique text, with the permissions to read and to edit", async () => {
    await using place = await toolPlace(files);
    const edit = { filePath: "a", oldString: "total = 1", newString: "total = 2" };
    expect((await prepare(editTool, edit, place)).permissions).toMatchObject([
      { permission: "edit", subjects: [{ text: "a" }] },
      { permission: "read", subjects: [{ text: "a" }] },
    ]);
    expect(await call(editTool, edit, place)).toMatchObject({
      output: expect.not.stringContaining("changed since"),
    });
    expect(await place.text("a")).toBe("x\ntotal = 2\nx\n}\n");
  });

  test("is edited by exact, unique text if it changed since, and the model learns that", async () => {
    await using place = await toolPlace({ a: "old\n" });
    await read("a", place);
    await place.write(files);
    const { output } = await call(editTool, { filePath: "a", oldString: "total = 1", newString: "2" }, place);
    expect(output).toMatch(
      /2: 2[^]*The file had changed since it was read; of its new text you know only these lines/,
    );
  });

  test("is not overwritten after such an edit, but can be edited further", async () => {
    await using place = await toolPlace(files);
    await call(editTool, { filePath: "a", oldString: "total = 1", newString: "total = 2" }, place);
    await expect(prepare(writeTool, { filePath: "a", content: "new" }, place)).rejects.toThrow(
      /Only a part of .* was shown in this session\. Read it first/,
    );
    await call(editTool, { filePath: "a", oldString: "  total =  2", newString: "total = 3" }, place);
    expect(await place.text("a")).toBe("x\ntotal = 3\nx\n}\n");
  });
});

describe("text that is not found", () => {
  const code =
    "function total(list) {\n\tlet sum = 0;\n\tfor (const one of list) sum += one;\n\treturn sum;\n}\n";
  const cases: readonly (readonly [string, string, string, RegExp])[] = [
    [
      "names the nearest line",
      code,
      "for (const one in list) total += one;",
      /The nearest lines are:\n3: \tfor \(const one of list\) sum \+= one;\nCopy the line exactly, without the number\./,
    ],
    [
      "names the first line that differs",
      code,
      "\tlet sum = 0;\n\tfor (const x of items) sum += x;\n\treturn sum + 1;",
      /nearest lines are:\n3: \tfor[^]*The first difference is in line 3, where oldString has "\\tfor \(const x of items\)/,
    ],
    [
      "names quotes",
      "say(\u201chello there\u201d);\n",
      'say("hello there");',
      /only difference to oldString is in quotes or dashes/,
    ],
    [
      "names dashes",
      "range 1\u20132 of it\n",
      "range 1-2 of it",
      /only difference to oldString is in quotes or dashes/,
    ],
    [
      "names HTML escapes",
      "if (a < b && b > c) {}\n",
      "if (a &lt; b &amp;&amp; b &gt; c) {}",
      /only difference to oldString is in HTML escapes/,
    ],
    [
      "names upper and lower case",
      "const MaxSize = 10;\n",
      "const maxSize = 10;",
      /only difference to oldString is in upper and lower case/,
    ],
    ["names line numbers", code, "2\tlet sum = 0;\n3\tfor", /line numbers that read shows: leave them out/],
    [
      "names line numbers with bars",
      code,
      "  2| let sum = 0;",
      /line numbers that read shows: leave them out/,
    ],
    ["names the signs of a diff", code, "-\tlet sum = 0;\n+\tlet sum = 1;", /signs of a diff/],
    [
      "names a placeholder",
      code,
      "function total(list) {\n\t// ... existing code ...\n}",
      /existing code \.\.\." is not in the file: give the real lines/,
    ],
    [
      "says that nothing is like it",
      code,
      "import React from 'react';",
      /No line of the file is like it\. Look for the place with grep/,
    ],
  ];

  test.each(cases)("%s", async (_, text, oldString, says) => {
    await using place = await toolPlace({ a: text });
    await read("a", place);
    const message = await refusal({ filePath: "a", oldString, newString: "new" }, place);
    expect(message).toMatch(says);
    expect(message).toMatch(/Nothing was changed\.$/);
    expect(message.length).toBeLessThan(refusalLimit);
    expect(await place.text("a")).toBe(text);
  });

  test("shows only some lines of long ones", async () => {
    const long = `const list = [${"'entry', ".repeat(500)}];\n`;
    await using place = await toolPlace({ a: long.repeat(3) });
    await read("a", place);
    const oldString = `const list = ["other", ${"'entry', ".repeat(500)}];\nconst list = [];`;
    expect((await refusal({ filePath: "a", oldString, newString: "" }, place)).length).toBeLessThan(
      refusalLimit,
    );
  });

  test("in a file that was not read shows lines after reading was permitted", async () => {
    await using place = await toolPlace({ a: code });
    const prepared = await prepare(
      editTool,
      { filePath: "a", oldString: "let sum  = 0", newString: "" },
      place,
    );
    await expect(run(prepared, place)).rejects.toThrow(
      /was not read in this session\. Read it first\. [^]*2: \tlet sum = 0;/,
    );
  });
});

/** Characters; about 120 tokens. */
const refusalLimit = 480;

async function refusal(input: object, place: ToolPlace): Promise<string> {
  const failure: unknown = await prepare(editTool, input, place).catch((error: unknown) => error);
  return failure instanceof Error ? failure.message : "not refused";
}

test("keeps what the user changes between question and answer", async () => {
  await using place = await toolPlace({ a: "one\n", b: "one\n" });
  await read("a", place);
  await read("b", place);
  const changed = await prepare(editTool, { filePath: "a", oldString: "one", newString: "two" }, place);
  const removed = await prepare(editTool, { filePath: "b", oldString: "one", newString: "two" }, place);
  await place.write({ a: "one by hand\n" });
  await rm(place.path("b"));
  await expect(run(changed, place)).rejects.toThrow("was changed since it was read. Read it again");
  await expect(run(removed, place)).rejects.toThrow("no such file");
  expect(await place.text("a")).toBe("one by hand\n");
});

test("edits of one step that were prepared together all take effect, also side by side", async () => {
  await using place = await toolPlace({ a: "one\ntwo\nthree\nfour\n" });
  await read("a", place);
  const words = ["one", "two", "three", "four"];
  const prepared = await Promise.all(
    words.map((word) => prepare(editTool, { filePath: "a", oldString: word, newString: `${word}!` }, place)),
  );
  const results = await Promise.all(prepared.map((edit) => run(edit, place)));
  expect(results.map(({ status }) => status)).toEqual(words.map(() => "completed"));
  expect(await place.text("a")).toBe("one!\ntwo!\nthree!\nfour!\n");
});

test("an edit fails if an earlier one of the step removed its text", async () => {
  await using place = await toolPlace({ a: "one\ntwo\n" });
  await read("a", place);
  const first = await prepare(editTool, { filePath: "a", oldString: "one\ntwo", newString: "three" }, place);
  const second = await prepare(editTool, { filePath: "a", oldString: "two", newString: "2" }, place);
  await run(first, place);
  await expect(run(second, place)).rejects.toThrow("oldString not found in file.");
  expect(await place.text("a")).toBe("three\n");
});

test("a file edited just now can be edited again without reading it", async () => {
  await using place = await toolPlace({ a: "one\n" });
  await read("a", place);
  await call(editTool, { filePath: "a", oldString: "one", newString: "two" }, place);
  await call(editTool, { filePath: "a", oldString: "two", newString: "three" }, place);
  expect(await place.text("a")).toBe("three\n");
});

test("an old text that could take forever to find gets an answer soon", { timeout: 20_000 }, async () => {
  await using place = await toolPlace({ a: "a ".repeat(1_000_000) });
  await read("a", place);
  const input = { filePath: "a", oldString: `${"a  ".repeat(3_000)}b`, newString: "b" };
  await expect(prepare(editTool, input, place)).rejects.toThrow("oldString not found in file.");
});
