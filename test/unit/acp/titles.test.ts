import { expect, test } from "vitest";
import { formatTitle } from "../../../src/acp/view/titles.ts";

const markdown = { markdownTitles: true };
const plain = { markdownTitles: false };

test.each([
  ["**/*.ts", "\\*\\*/\\*.ts"],
  ["__init__.py", "\\_\\_init\\_\\_.py"],
  ["src/my_long_name.ts", "src/my_long_name.ts"],
  ["[id]/page.tsx", "\\[id\\]/page.tsx"],
  ["a `b` <c>", "a \\`b\\` \\<c\\>"],
  ["# heading", "\\# heading"],
  ["https://example.org/a-b?c=d#e", "https://example.org/a-b?c=d#e"],
  ["größe_ändern", "größe_ändern"],
])("the title %j becomes %j where titles are Markdown", (title, shown) => {
  expect(formatTitle(title, "search", markdown)).toBe(shown);
  expect(formatTitle(title, "search", plain)).toBe(title);
});

test.each(["execute", "edit"] as const)(
  "the title of a call of the kind %s is plain text everywhere",
  (kind) => {
    expect(formatTitle("rm *_x `y`", kind, markdown)).toBe("rm *_x `y`");
  },
);
