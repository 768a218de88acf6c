import { applyPatch } from "diff";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { toToolCall } from "../../../src/acp/v2/convert.ts";
import { gitPatch } from "../../../src/acp/v2/git-patch.ts";
import { limitContent } from "../../../src/acp/view/card-limits.ts";

const path = "/work/a.txt";

test("names line 0 in a patch of a created, emptied or removed file, as git does", () => {
  expect(gitPatch({ path, before: null, after: "one\n" }, "/work")).toBe(
    "diff --git a/a.txt b/a.txt\nnew file mode 100644\n--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,1 @@\n+one\n",
  );
  expect(gitPatch({ path, before: "one\n", after: "" }, "/work")).toBe(
    "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +0,0 @@\n-one\n",
  );
  expect(gitPatch({ path, before: "one\n", after: null }, "/work")).toBe(
    "diff --git a/a.txt b/a.txt\ndeleted file mode 100644\n--- a/a.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-one\n",
  );
});

describe("the patch of a change that is too long for a card", () => {
  const numbers = (count: number, name: string) =>
    Array.from({ length: count }, (_, index) => `${name} ${index}\n`).join("");
  const patchOf = (before: string | null, after: string) => {
    const content = limitContent([{ type: "diff", path, oldText: before, newText: after }]);
    const [diff, note] = toToolCall({ toolCallId: "call", content }, "/work").content ?? [];
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

  test("is left out if its texts are truncated", () => {
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
