import { statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { afterEach, expect, test, vi } from "vitest";
import { takeInode } from "../../../src/workspace/changes/inode-order.ts";
import { temporaryFolder } from "../../support/temp.ts";

afterEach(() => void vi.unstubAllEnvs());

test("only APFS is taken to give higher inodes to later files", async () => {
  await using folder = await temporaryFolder();
  for (const name of ["TMPDIR", "TEMP"]) vi.stubEnv(name, folder.path);
  expect(takeInode(folder.path, "linux")).toBe(undefined);
  expect(takeInode(folder.path, "win32")).toBe(undefined);
  expect(takeInode(folder.path, "darwin")).toBeGreaterThan(0);
  expect(await readdir(folder.path)).toEqual([]);
});

test("a folder that is gone or on another volume has no order of inodes", async () => {
  await using folder = await temporaryFolder();
  expect(takeInode(`${folder.path}/gone`, "darwin")).toBe(undefined);
  const other = ["/proc", "/dev"].find((path) => deviceOf(path) !== deviceOf(tmpdir()));
  if (other !== undefined) expect(takeInode(other, "darwin")).toBe(undefined);
});

const deviceOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.dev;

test.runIf(process.platform === "darwin")(
  "an inode is between those of earlier and later files",
  async () => {
    await using folder = await temporaryFolder({ earlier: "" });
    const inode = takeInode(folder.path) ?? 0;
    await folder.write({ later: "" });
    const inodeOf = (name: string) => statSync(`${folder.path}/${name}`).ino;
    expect(inode).toBeGreaterThan(inodeOf("earlier"));
    expect(inodeOf("later")).toBeGreaterThan(inode);
  },
);
