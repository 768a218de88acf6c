import { expect, test } from "vitest";
import { isBinary } from "../../../src/tool/text-file.ts";

test("NUL or many control characters make a file binary; tabs and colors do not", () => {
  expect(isBinary(Buffer.from("text\0"))).toBe(true);
  expect(isBinary(Buffer.from(""))).toBe(false);
  const harmless = [9, 10, 12, 13, 27];
  for (let byte = 1; byte < 256; byte++) {
    const isControl = byte < 32 && !harmless.includes(byte);
    const share = (count: number) => Buffer.from([...Array(10 - count).fill(65), ...Array(count).fill(byte)]);
    expect([byte, isBinary(share(4))]).toEqual([byte, isControl]);
    expect([byte, isBinary(share(3))]).toEqual([byte, false]);
  }
});
