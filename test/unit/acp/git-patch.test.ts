import { applyPatch } from "diff";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { toToolCall } from "../../../src/acp/v2/convert.ts";
import { gitPatch } from "../../../src/acp/v2/git-patch.ts";
import { limitContent } from "../../../src/acp/view/card-limits.ts";

const path = "/work/a.txt";

test("names line 0 in a patch of a created, emptied or removed file, as git does", () => {
  expect(gitPatch({ path, before: null, after: "one\n" })).toBe(
    "diff --git /work/a.txt /work/a.txt\nnew file mode 100644\n--- /dev/null\n+++ /work/a.txt\n@@ -0,0 +1,1 @@\n+one\n",
  );
  expect(gitPatch({ path, before: "one\n", after: "" })).toBe(
    "diff --git /work/a.txt /work/a.txt\n--- /work/a.txt\n+++ /work/a.txt\n@@ -1,1 +0,0 @@\n-one\n",
  );
  expect(gitPatch({ path, before: "one\n", after: null })).toBe(
    "diff --git /work/a.txt /work/a.txt\ndeleted file mode 100644\n--- /work/a.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-one\n",
  );
});

test("names both paths of a moved file", () => {
  expect(gitPatch({ path, fromPath: "/work/old.txt", before: "one\n", after: "two\n" })).toBe(
    "diff --git /work/old.txt /work/a.txt\nrename from /work/old.txt\nrename to /work/a.txt\n--- /work/old.txt\n+++ /work/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n",
  );
});

test("separates the folders of Windows paths by slashes, as git does", () => {
  const change = { path: String.raw`C:\work\a.txt`, before: "one\n", after: "two\n" };
  expect(gitPatch(change, "\\")).toBe(
    "diff --git C:/work/a.txt C:/work/a.txt\n--- C:/work/a.txt\n+++ C:/work/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n",
  );
});

describe("the patch of a change that is too long for a card", () => {
  const numbers = (count: number, name: string) =>
    Array.from({ length: count }, (_, index) => `${name} ${index}\n`).join("");
  const patchOf = (before: string | null, after: string) => {
    const content = limitContent([{ type: "diff", path, oldText: before, newText: after }]);
    const [diff, note] = toToolCall({ toolCallId: "call", content }).content ?? [];
    expect(JSON.stringify(note)).toContain("too long to be shown");
    return diff;
  };

  test("applies to the file if only the lines around the change are shown", () => {
    const before = numbers(60_000, "line");
    const after = before.replace("line 30000\n", "changed\nadded\n");
    const diff = patchOf(before, after);
    const text = z.object({ patch: z.object({ text: z.string() }) }).parse(diff).patch.text;
    expect(text).toContain("@@ -29998,7 +29998,8 @@");
    expect(applyPatch(before, text)).toBe(after);
  });

  test("is omitted if its texts are truncated", () => {
    for (const [before, operation] of [
      [numbers(90_000, "old"), "modify"],
      [null, "add"],
    ] as const)
      expect(patchOf(before, numbers(90_000, "new"))).toEqual({
        type: "diff",
        changes: [{ path, fileType: "text", operation }],
      });
  });
});
