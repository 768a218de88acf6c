import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { endWriting } from "../../../src/workspace/process/process-output.ts";

test.each([
  ["linux", true],
  ["darwin", true],
  // On that system it would close the pipe before the program has written.
  ["win32", false],
] as const)("on %s the unused side of a program's output is closed: %s", (platform, isEnded) => {
  const output = new PassThrough();
  endWriting(output, platform);
  expect(output.writableEnded).toBe(isEnded);
});
