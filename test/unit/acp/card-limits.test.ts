import { describe, expect, test } from "vitest";
import { limitContent, limitInput } from "../../../src/acp/view/card-limits.ts";

const mebibyte = 1024 * 1024;
const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
const lines = (count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => `line ${from + at} of a long file\n`).join("");

test("a short text is unchanged", () => {
  const content = [{ type: "diff", path: "/a", oldText: "a", newText: "b" } as const];
  expect(limitContent(content)).toEqual(content);
  const input = { content: "x".repeat(10_000) };
  expect(limitInput(input)).toBe(input);
  expect(limitInput(undefined)).toBeUndefined();
});

describe("a diff", () => {
  test("of a long file shows the change with the lines around it", () => {
    const text = lines(50_000);
    const newText = text.replace("line 25000 of", "changed");
    const [diff, note] = limitContent([{ type: "diff", path: "/a", oldText: text, newText }]);
    if (diff?.type !== "diff") throw new Error("no diff");
    expect(diff.newText.split("\n")).toHaveLength(41);
    expect(diff.newText).toContain("changed a long file");
    expect(diff.oldText).toContain("line 24980 of");
    expect(note).toMatchObject({
      content: { text: expect.stringMatching(/^The change of \/a is too long/) },
    });
  });

  test("that is long everywhere is truncated on both sides", () => {
    const content = limitContent([
      { type: "diff", path: "/a", oldText: "\u0001".repeat(mebibyte), newText: "\u0002".repeat(mebibyte) },
    ]);
    expect(bytesOf(content)).toBeLessThan(mebibyte * 0.75);
    expect(content[0]).toMatchObject({ type: "diff", newText: expect.stringMatching(/characters more\)$/) });
  });

  test("of a new file has no old text, even if it is long", () => {
    const [diff] = limitContent([{ type: "diff", path: "/a", oldText: null, newText: lines(50_000) }]);
    expect(diff).toMatchObject({ type: "diff", oldText: null });
  });
});

test("many of them share the limit of a line", () => {
  const diff = { type: "diff", path: "/a", oldText: "", newText: lines(8_000) } as const;
  expect(bytesOf(limitContent(Array.from({ length: 100 }, () => diff)))).toBeLessThan(mebibyte * 0.75);
});

test("an image that is too large is named instead", () => {
  const image = { type: "image", mimeType: "image/png", data: "A".repeat(2 * mebibyte) } as const;
  expect(limitContent([{ type: "content", content: image }])[0]).toEqual({
    type: "content",
    content: { type: "text", text: "An image (image/png) is too long to be shown." },
  });
});

test("long texts of an input are truncated, at any depth", () => {
  const long = "x".repeat(mebibyte);
  const cut = limitInput({ filePath: "/a", edits: [{ newString: long }], content: long });
  expect(cut).toMatchObject({
    filePath: "/a",
    edits: [{ newString: expect.stringMatching(/characters more\)$/) }],
  });
  expect(bytesOf(cut)).toBeLessThan(mebibyte / 4);
  expect(limitInput(Array.from({ length: 300_000 }, () => "many"))).toEqual({
    note: "This input is too long to be shown.",
  });
});
