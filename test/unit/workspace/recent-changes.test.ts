import { appendFile, readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { recentMs } from "../../../src/workspace/recent/recent-changes.ts";
import { SharedChanges } from "../../../src/workspace/recent/shared-changes.ts";
import { temporaryFolder } from "../../support/temp.ts";

afterEach(() => {
  vi.useRealTimers();
});

/** Two processes with one folder: authors of the first and the second. */
async function openTwo() {
  const home = await temporaryFolder();
  const folder = join(home.path, "recent-changes");
  const open = (isShared: boolean) => new SharedChanges({ folder, isShared, log: silentLog });
  const [first, second] = [open(true), open(true)];
  const author = (id: string, title?: string) => () => ({ id, title, isTask: false });
  return {
    home,
    folder,
    open,
    author,
    first: first.openFor(author("one", "First")),
    sibling: first.openFor(author("two")),
    second: second.openFor(author("three")),
  };
}

test("others of the same and of another process see a change, its author does not", async () => {
  const { first, sibling, second } = await openTwo();
  await first.note([{ path: "/w/a", after: "hash" }]);
  const seen = {
    path: "/w/a",
    after: "hash",
    time: expect.any(Number),
    author: { id: "one", title: "First", isTask: false },
  };
  expect(await first.find("/w/a")).toBeUndefined();
  expect(await sibling.find("/w/a")).toEqual(seen);
  expect(await second.find("/w/a")).toEqual(seen);
  expect(await second.find("/w/b")).toBeUndefined();
  await first.note([{ path: "/w/a", after: null }]);
  expect(await second.list()).toEqual([expect.objectContaining({ path: "/w/a", after: null })]);
});

test("news are returned once, and only since the author began", async () => {
  const { first, second, open, author } = await openTwo();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  await first.note([{ path: "/w/a" }]);
  expect(await second.takeNews()).toHaveLength(1);
  expect(await second.takeNews()).toEqual([]);
  vi.advanceTimersByTime(1);
  const late = open(true).openFor(author("four"));
  await first.note([{ path: "/w/b" }]);
  for (const one of [second, late])
    expect(await one.takeNews()).toEqual([expect.objectContaining({ path: "/w/b" })]);
});

test("a change is forgotten after some minutes", async () => {
  const { first, sibling, second } = await openTwo();
  await first.note([{ path: "/w/a" }]);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + recentMs + 1_000 });
  expect(await sibling.find("/w/a")).toBeUndefined();
  expect(await second.find("/w/a")).toBeUndefined();
});

test("the record stays small, and old files of ended processes are removed", async () => {
  const { folder, first, second } = await openTwo();
  await first.note([{ path: "/w/first" }]);
  const [name = ""] = await readdir(folder);
  await writeFile(join(folder, "1-old.jsonl"), "");
  await utimes(join(folder, "1-old.jsonl"), 1, 1);
  for (let n = 0; n < 30; n++)
    await first.note(Array.from({ length: 100 }, (_, index) => ({ path: `/w/${n}-${index}`, after: "h" })));
  const lines = (await readFile(join(folder, name), "utf8")).trim().split("\n");
  expect(lines.length).toBeLessThanOrEqual(1_000);
  await second.note([{ path: "/w/x" }]);
  expect(await readdir(folder)).not.toContain("1-old.jsonl");
  expect(await second.find("/w/29-99")).toBeDefined();
  expect(await second.find("/w/first")).toBeUndefined();
});

test("an incomplete line of a killed process hides no other change", async () => {
  const { folder, first, second } = await openTwo();
  await first.note([{ path: "/w/a" }]);
  const [name = ""] = await readdir(folder);
  await appendFile(join(folder, name), '{"path":"/w/');
  expect(await second.find("/w/a")).toBeDefined();
});

test("an ephemeral process sees the changes of others and shares none", async () => {
  const { first, second, open, author } = await openTwo();
  const hidden = open(false).openFor(author("hidden"));
  await first.note([{ path: "/w/a" }]);
  await hidden.note([{ path: "/w/b" }]);
  expect(await hidden.find("/w/a")).toBeDefined();
  expect(await second.find("/w/b")).toBeUndefined();
});
