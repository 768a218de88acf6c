import { expect, test } from "vitest";
import { quoteLine } from "../../../src/base/text/quote-word.ts";

const words = [String.raw`C:\it's\prettier.cmd`, "--write", "$HOME a"];

test.each([
  ["/bin/bash", String.raw`'C:\it'\''s\prettier.cmd' '--write' '$HOME a'`],
  [String.raw`C:\Windows\system32\cmd.exe`, String.raw`"C:\it's\prettier.cmd" "--write" "$HOME a"`],
])("words are quoted for %s", (shell, line) => {
  expect(quoteLine(words, shell)).toBe(line);
});
