import { expect, test } from "vitest";
import type { FileState } from "../../../src/workspace/changes/file-state.ts";
import { FormerFiles, formerFilesLimit } from "../../../src/workspace/changes/former-files.ts";

const made = 1_000_000;
const started = made + 10_000;
const version = { inode: 7, created: made };

/** A file of the same name that was made during a command that started at `started`. */
const again: FileState = {
  isLink: false,
  size: 1,
  mode: 0o644,
  inode: 8,
  names: 1,
  modified: started + 1,
  changed: started + 1,
  created: made,
};

test.each([
  ["made again under the name, with the old time of creation", again, true],
  ["made again, with an old time of modification", { ...again, modified: 5 }, true],
  ["made again, at the same place of the disk", { ...again, inode: version.inode + 2 ** 48 }, true],
  ["moved away and back", { ...again, inode: version.inode }, false],
  ["another one that was moved in", { ...again, created: made - 1 }, false],
  ["there before the command", { ...again, changed: started - 1_000 }, false],
])("tells whether a file is new at its path: %s", (_, state, isNew) => {
  const seen = new FormerFiles();
  seen.add("a", version);
  expect(seen.isMadeAgain("a", state, started)).toBe(isNew);
  expect(seen.isMadeAgain("b", state, started)).toBe(false);
});

test("a file that git's index names without an inode can have been made again", () => {
  const seen = new FormerFiles();
  seen.add("a", { inode: 0, created: made });
  expect(seen.isMadeAgain("a", again, started)).toBe(true);
  seen.add("a", { inode: 0, created: undefined });
  expect(seen.isMadeAgain("a", again, started)).toBe(false);
});

test("the files that were seen least recently are forgotten above the limit", () => {
  const seen = new FormerFiles();
  for (const path of ["a", "b", "a"]) seen.add(path, version);
  for (let count = 1; count < formerFilesLimit; count++) seen.add(`other ${count}`, version);
  expect(["a", "b"].map((path) => seen.isMadeAgain(path, again, started))).toEqual([true, false]);
});
