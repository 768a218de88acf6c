import { expect, test } from "vitest";
import { toPath } from "../../../src/lsp/server-answers.ts";

test.each([
  ["file:///work/a%20b.ts", false, "/work/a b.ts"],
  ["file:///C:/work/a.ts", true, "C:\\work\\a.ts"],
  ["file:///c%3A/work/a.ts", true, "C:\\work\\a.ts"],
  ["jdt://contents/a.class", true, undefined],
])("the path of %s (on Windows: %s) is a real path", (uri, isWindows, path) => {
  expect(toPath(uri, isWindows)).toBe(path);
});
