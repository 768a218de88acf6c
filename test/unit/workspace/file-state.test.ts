import { type BigIntStats, lstatSync } from "node:fs";
import { expect, test } from "vitest";
import { inodeRange, toState } from "../../../src/workspace/changes/file-state.ts";

/** Metadata of this file, with other values. */
const stateOf = (values: Partial<BigIntStats>) =>
  toState(Object.assign(lstatSync(import.meta.filename, { bigint: true }), values));

test("files have different inodes, also where these exceed 53 bits", () => {
  const used = 2_000n << 48n;
  const inodes = [5n, 6n, used + 5n, used + 6n].map((ino) => stateOf({ ino })?.inode ?? 0);
  expect(new Set(inodes).size).toBe(4);
  expect(inodes.every(Number.isSafeInteger)).toBe(true);
  // As in git's index.
  expect(inodes.map((inode) => inode % inodeRange)).toEqual([5, 6, 5, 6]);
});

const second = 1_000_000_000n;
const notRecorded = -11_644_473_600n * second;

test.each([
  ["the later time of the others", { birthtimeNs: 90n, mtimeNs: 80n }, 90],
  ["that of modification for a changed file", { birthtimeNs: 90n, mtimeNs: 95n }, 95],
])("a file system that does not record changes has instead %s", (_, { birthtimeNs, mtimeNs }, seconds) => {
  const times = { birthtimeNs: birthtimeNs * second, mtimeNs: mtimeNs * second };
  const state = stateOf({ ...times, ctimeNs: notRecorded });
  expect(state).toMatchObject({ created: 90_000, changed: seconds * 1_000 });
});

test("a file without a time of creation has that of its last change", () => {
  expect(stateOf({ birthtimeNs: 0n, mtimeNs: 5n * second, ctimeNs: 7n * second })).toMatchObject({
    created: 7_000,
    changed: 7_000,
    modified: 5_000,
  });
});
