import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { UserError } from "../../../src/base/errors.ts";
import { silentLog } from "../../../src/base/log.ts";
import { JsonStore } from "../../../src/storage/json/json-store.ts";
import { lacksPipesAndDevices, shownMode } from "../../support/platform/platform.ts";

const schema = z.object({ n: z.number() });
let root: string;
let quarantined: { path: string; reason: string }[];
let store: JsonStore;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "fairlead-json-store-"));
  quarantined = [];
  store = new JsonStore({
    root,
    log: silentLog,
    onQuarantine: (path, reason) => quarantined.push({ path, reason }),
  });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

test("a written value can be read, also by another store", async () => {
  await store.write(["a", "b"], { n: 1 });
  expect(await store.read(["a", "b"], schema)).toEqual({ n: 1 });
  expect(await new JsonStore({ root, log: silentLog }).read(["a", "b"], schema)).toEqual({ n: 1 });
});

test("a missing file reads as undefined", async () => {
  expect(await store.read(["a", "b"], schema)).toBeUndefined();
});

test.each([0, false, null, ""])("the value %j is stored like any other", async (value) => {
  await store.write(["falsy"], value);
  expect(await store.read(["falsy"], z.unknown())).toBe(value);
});

test("files are readable by their owner only", async () => {
  await store.write(["a", "b"], { n: 1 });
  expect(statSync(join(root, "a")).mode & 0o777).toBe(shownMode(0o700));
  expect(statSync(join(root, "a", "b.json")).mode & 0o777).toBe(shownMode(0o600));
});

test("of parallel writes the last one stays and no temporary file remains", async () => {
  await Promise.all(Array.from({ length: 200 }, (_, n) => store.write(["a", "b"], { n })));
  expect(await store.read(["a", "b"], schema)).toEqual({ n: 199 });
  expect(readdirSync(join(root, "tmp"))).toEqual([]);
});

test("parallel updates are all applied", async () => {
  const add = (value: { n: number } | undefined) => ({ n: (value?.n ?? 0) + 1 });
  await Promise.all(Array.from({ length: 50 }, () => store.update(["count"], schema, add)));
  expect(await store.read(["count"], schema)).toEqual({ n: 50 });
});

test("an update does not undo a write that was requested after it", async () => {
  const done = [
    store.write(["a"], { n: 1 }),
    store.update(["a"], schema, (value) => ({ n: (value?.n ?? 0) * 10 })),
    store.write(["a"], { n: 3 }),
  ];
  await Promise.all(done);
  expect(await store.read(["a"], schema)).toEqual({ n: 3 });
});

test("removing is idempotent", async () => {
  await store.write(["a", "b"], { n: 1 });
  await store.remove(["a", "b"]);
  await store.remove(["a", "b"]);
  expect(await store.read(["a", "b"], schema)).toBeUndefined();
});

test("keys are listed sorted, without temporary, hidden, moved-aside and foreign files", async () => {
  for (const key of [
    ["x", "b", "2"],
    ["x", "a"],
    ["x", "b", "1"],
  ])
    await store.write(key, { n: 1 });
  for (const name of [".a.json.tmp", ".hidden.json", "notes.txt", "a.json.corrupt-1"]) {
    writeFileSync(join(root, "x", name), "{}");
  }
  expect(await store.list(["x"])).toEqual([
    ["x", "a"],
    ["x", "b", "1"],
    ["x", "b", "2"],
  ]);
});

test.each(["", ".", "..", ".hidden", "a/b", "a\\b", "a\0b", "C:x"])(
  "the key part %j is refused",
  async (part) => {
    await expect(store.read(["x", part], schema)).rejects.toThrow("not a part of a key");
    await expect(store.write([part], 1)).rejects.toThrow("not a part of a key");
  },
);

const damages: Record<string, (path: string) => void> = {
  "an empty file": (path) => writeFileSync(path, ""),
  "a torn file": (path) => writeFileSync(path, '{"n": 1'),
  "a file of NULs": (path) => writeFileSync(path, Buffer.alloc(64)),
  "NULs at the end": (path) => writeFileSync(path, Buffer.concat([Buffer.from('{"n":1}'), Buffer.alloc(9)])),
  "plain text": (path) => writeFileSync(path, "hello"),
  "two values": (path) => writeFileSync(path, '{"n":1}{"n":2}'),
  "another type": (path) => writeFileSync(path, "[1,2]"),
  null: (path) => writeFileSync(path, "null"),
  "a wrong field": (path) => writeFileSync(path, '{"n":"one"}'),
  "a missing field": (path) => writeFileSync(path, "{}"),
  "bytes that are not UTF-8": (path) => writeFileSync(path, Buffer.from([0x22, 0xff, 0xfe, 0x22])),
  "UTF-16": (path) => writeFileSync(path, Buffer.from('{"n":1}', "utf16le")),
  "a folder": (path) => mkdirSync(path),
  "a folder with files": (path) => {
    mkdirSync(path);
    writeFileSync(join(path, "x"), "x");
  },
  "a symbolic link to a good file": (path) => {
    writeFileSync(join(root, "outside"), '{"n":1}');
    symlinkSync(join(root, "outside"), path);
  },
  "a dangling symbolic link": (path) => symlinkSync(join(root, "nowhere"), path),
  "a huge file": (path) => {
    writeFileSync(path, "");
    truncateSync(path, 2 ** 32);
  },
  ...(!lacksPipesAndDevices && { "a pipe": (path: string) => void execFileSync("mkfifo", [path]) }),
};

for (const [name, damage] of Object.entries(damages)) {
  test(`${name} is moved aside, named, and hides no others`, async () => {
    await store.write(["x", "bad"], { n: 1 });
    await store.write(["x", "good"], { n: 2 });
    const path = join(root, "x", "bad.json");
    unlinkSync(path);
    damage(path);
    expect(await store.read(["x", "bad"], schema)).toBeUndefined();
    expect(quarantined).toEqual([{ path, reason: expect.stringMatching(/./) }]);
    expect(readdirSync(join(root, "x"))).toEqual(["bad.json.corrupt-1", "good.json"]);
    expect(await store.list(["x"])).toEqual([["x", "good"]]);
    expect(await store.read(["x", "good"], schema)).toEqual({ n: 2 });
  });
}

test("files that were moved aside do not overwrite each other", async () => {
  mkdirSync(join(root, "x"));
  for (const text of ["one", "two"]) {
    writeFileSync(join(root, "x", "bad.json"), text);
    await store.read(["x", "bad"], schema);
  }
  expect(readFileSync(join(root, "x", "bad.json.corrupt-1"), "utf8")).toBe("one");
  expect(readFileSync(join(root, "x", "bad.json.corrupt-2"), "utf8")).toBe("two");
});

test("a write moves aside a folder in its place", async () => {
  mkdirSync(join(root, "x", "a.json"), { recursive: true });
  await store.write(["x", "a"], { n: 1 });
  expect(await store.read(["x", "a"], schema)).toEqual({ n: 1 });
  expect(quarantined).toEqual([{ path: join(root, "x", "a.json"), reason: "a folder" }]);
});

test("a link in place of a folder does not lead out of the store", async () => {
  const outside = mkdtempSync(join(tmpdir(), "fairlead-outside-"));
  symlinkSync(outside, join(root, "x"));
  await store.write(["x", "a"], { n: 1 });
  expect(readdirSync(outside)).toEqual([]);
  expect(quarantined).toEqual([{ path: join(root, "x"), reason: "a symbolic link" }]);
  rmSync(outside, { recursive: true });
});

test("a file in place of a folder gives a clear error until it is gone", async () => {
  writeFileSync(join(root, "x"), "in the way");
  const failing = store.write(["x", "a"], { n: 1 });
  await expect(failing).rejects.toThrow(UserError);
  await expect(failing).rejects.toThrow(
    /x[\\/]a\.json.*there is a file where a folder should be \(E.*Move that file away/,
  );
  rmSync(join(root, "x"));
  await store.write(["x", "a"], { n: 2 });
  expect(await store.read(["x", "a"], schema)).toEqual({ n: 2 });
});

test("writes that wait for a failing one fail too, each with an error", async () => {
  writeFileSync(join(root, "x"), "in the way");
  const results = await Promise.allSettled(
    Array.from({ length: 9 }, (_, n) => store.write(["x", "a"], { n })),
  );
  expect(results.map((result) => result.status)).toEqual(Array.from({ length: 9 }, () => "rejected"));
});

test("temporary files of dead writers are removed, those in use remain", async () => {
  mkdirSync(join(root, "tmp"));
  const inUse = `.a.json.${process.pid}-1.tmp`;
  const old = `.b.json.${process.pid}-1.tmp`;
  for (const name of [inUse, old, ".c.json.999999999-1.tmp", ".d.json.tmp"]) {
    writeFileSync(join(root, "tmp", name), "{");
  }
  utimesSync(join(root, "tmp", old), 1, 1);
  await store.removeTemporaries();
  expect(readdirSync(join(root, "tmp"))).toEqual([inUse]);
});
