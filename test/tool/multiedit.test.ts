import { expect, test } from "vitest";
import { multieditTool } from "../../src/tool/edit/multiedit.ts";
import { readTool } from "../../src/tool/read/read.ts";
import { sha256 } from "../../src/base/text/hash.ts";
import { call, prepare, toolPlace } from "./tool-place.ts";

const hashOf = (text: string) => sha256(Buffer.from(text));

test("edits are applied in order, as one change", async () => {
  await using place = await toolPlace({ a: "one\ntwo\nthree\n" });
  await call(readTool, { filePath: "a" }, place);
  const edits = [
    { oldString: "one", newString: "two" },
    { oldString: "two", newString: "2", replaceAll: true },
  ];
  expect(await call(multieditTool, { filePath: "a", edits }, place)).toEqual({
    status: "completed",
    output: "Changed a (+2 -2 lines).\n\n1: 2\n2: 2\n3: three",
    changes: [
      {
        path: place.path("a"),
        operation: "update",
        before: hashOf("one\ntwo\nthree\n"),
        after: hashOf("2\n2\nthree\n"),
        additions: 2,
        deletions: 2,
      },
    ],
  });
  expect(await place.text("a")).toBe("2\n2\nthree\n");
});

test("one edit that does not fit stops all of them, and is named", async () => {
  await using place = await toolPlace({ a: "one\ntwo\n" });
  await call(readTool, { filePath: "a" }, place);
  const edits = [
    { oldString: "one", newString: "1" },
    { oldString: "none", newString: "x" },
  ];
  await expect(prepare(multieditTool, { filePath: "a", edits }, place)).rejects.toThrow(
    /^Edit 2 of 2: oldString not found in file\. .* Nothing was changed\.$/,
  );
  expect(await place.text("a")).toBe("one\ntwo\n");
});

test("an empty old text creates a new file, which later edits change", async () => {
  await using place = await toolPlace();
  const edits = [
    { oldString: "", newString: "one\n" },
    { oldString: "one", newString: "two" },
  ];
  await call(multieditTool, { filePath: "a", edits }, place);
  expect(await place.text("a")).toBe("two\n");
});

test("edits that cancel each other out change nothing", async () => {
  await using place = await toolPlace({ a: "one\n" });
  await call(readTool, { filePath: "a" }, place);
  const edits = [
    { oldString: "one", newString: "two" },
    { oldString: "two", newString: "one" },
  ];
  await expect(prepare(multieditTool, { filePath: "a", edits }, place)).rejects.toThrow(
    "leave the file as it is",
  );
});

test("a call without edits is not valid", () => {
  expect(multieditTool.input.safeParse({ filePath: "a", edits: [] }).success).toBe(false);
});
