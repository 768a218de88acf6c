import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findWorktree } from "../../../src/workspace/worktree.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync.native(mkdtempSync(join(tmpdir(), "fairlead-worktree-")));
  mkdirSync(join(folder, "repo", "src", "deep"), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true }));

test("finds the folder that contains .git, from anywhere below it", async () => {
  mkdirSync(join(folder, "repo", ".git"));
  expect(await findWorktree(join(folder, "repo", "src", "deep"))).toBe(join(folder, "repo"));
  expect(await findWorktree(join(folder, "repo"))).toBe(join(folder, "repo"));
});

test("accepts a .git file, as linked worktrees and submodules have one", async () => {
  mkdirSync(join(folder, "repo", ".git"));
  writeFileSync(join(folder, "repo", "src", ".git"), "gitdir: ../.git/modules/src\n");
  expect(await findWorktree(join(folder, "repo", "src", "deep"))).toBe(join(folder, "repo", "src"));
});

test("finds nothing outside git", async () => {
  expect(await findWorktree(join(folder, "repo", "src"))).toBeUndefined();
});
