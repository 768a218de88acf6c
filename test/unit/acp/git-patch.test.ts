import { expect, test } from "vitest";
import { gitPatch } from "../../../src/acp/v2/git-patch.ts";

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
