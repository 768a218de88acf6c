import { expect, test } from "vitest";
import { fitInstructions } from "../../../src/instruction/fit-instructions.ts";

const lines = (count: number) => "A rule of the project.\n".repeat(count);

test("texts that fit are unchanged", () => {
  const texts = [
    { path: "/a", text: lines(2) },
    { path: "/b", text: "é" },
  ];
  expect(fitInstructions(texts, 48)).toEqual(texts);
});

test("the longest texts are truncated at a line, with the place of the rest", () => {
  const texts = [
    { path: "/a/AGENTS.md", text: lines(100) },
    { path: "/b/AGENTS.md", text: lines(2) },
    { path: "https://example.com/rules", text: lines(200) },
  ];
  const [first, second, third] = fitInstructions(texts, 1_000);
  expect(second).toEqual(texts[1]);
  expect(first?.text).toBe(
    `${lines(20).trimEnd()}\n[Cut after 459 bytes, to save context. Read /a/AGENTS.md for the rest.]`,
  );
  expect(third?.text).toMatch(
    /\n\[Cut after 459 bytes, to save context\. Fetch https:\/\/example\.com\/rules for the rest\.\]$/,
  );
});

test("no character is split", () => {
  const [cut] = fitInstructions([{ path: "/a", text: "é".repeat(10) }], 5);
  expect(cut?.text).toBe("éé\n[Cut after 4 bytes, to save context. Read /a for the rest.]");
});
