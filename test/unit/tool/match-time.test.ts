import { expect, test } from "vitest";
import { runWithMatchLimit } from "../../../src/tool/edit/match-time.ts";
import { ToolFailure } from "../../../src/tool/tool.ts";

test("a search in a large file that finds no end is given up with a message", () => {
  const endless = () => {
    for (let at = 0; ; at++) if (at < 0) return { at };
  };
  const message = expect.stringMatching(/takes too long .* Nothing was changed/);
  expect(() => runWithMatchLimit(1_000_000, 1_000_000, endless)).toThrow(
    expect.objectContaining({ name: "ToolFailure", message }),
  );
});

test("returns what a search finds or throws within its time", () => {
  const failing = () => {
    throw new ToolFailure("It is not there.");
  };
  for (const size of [1, 1_000_000]) {
    expect(runWithMatchLimit(size, size, () => ({ at: 3 }))).toEqual({ at: 3 });
    expect(() => runWithMatchLimit(size, size, failing)).toThrow("It is not there.");
  }
});
