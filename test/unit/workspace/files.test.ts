import { execFile } from "node:child_process";
import { renameSync, rmSync } from "node:fs";
import { chmod, readdir, readFile, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { deferred } from "../../../src/base/async.ts";
import { UserError } from "../../../src/base/errors.ts";
import { openFiles } from "../../../src/workspace/files/disk-files.ts";
import { withFolder } from "../../../src/workspace/files/held-folder.ts";
import { exchangeByLink } from "../../../src/workspace/files/exchange.ts";
import { sha256 } from "../../../src/base/text/hash.ts";
import { readLimitBytes, StaleFile } from "../../../src/workspace/files/files.ts";
import { openSnapshots, snapshotLimitBytes } from "../../../src/workspace/files/snapshot.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { lacksOddNames, lacksPipesAndDevices, shownMode } from "../../support/platform/platform.ts";

test("a file is read with the SHA-256 of its bytes", async () => {
  await using folder = await temporaryFolder({ a: "abc" });
  expect(await openFiles().read(join(folder.path, "a"))).toEqual({
    bytes: Buffer.from("abc"),
    hash: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  });
});

test("missing files throw ENOENT; too large files are refused at once", async () => {
  await using folder = await temporaryFolder({ large: "" });
  const files = openFiles();
  await truncate(join(folder.path, "large"), readLimitBytes + 1);
  await expect(files.read(join(folder.path, "none"))).rejects.toThrow("ENOENT");
  await expect(files.read(join(folder.path, "large"))).rejects.toThrow("the limit is");
});

test.skipIf(lacksPipesAndDevices)("does not read or write a pipe", async () => {
  await using folder = await temporaryFolder();
  const files = openFiles();
  const pipe = join(folder.path, "pipe");
  await promisify(execFile)("mkfifo", [pipe]);
  await expect(files.read(pipe)).rejects.toThrow("is not a regular file");
  await expect(files.write(pipe, Buffer.from("new"), "hash")).rejects.toThrow(
    `${pipe} is not a regular file.`,
  );
});

test("a new file is created with its folders", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "a/b/c.txt");
  expect(await openFiles().write(path, Buffer.from("new"), null)).toEqual({
    hash: sha256(Buffer.from("new")),
  });
  expect(await readFile(path, "utf8")).toBe("new");
});

test("a replaced file keeps its mode, and no temporary file remains", async () => {
  await using folder = await temporaryFolder({ "run.sh": "old" });
  const path = join(folder.path, "run.sh");
  await chmod(path, 0o751);
  await openFiles().write(path, Buffer.from("new"), sha256(Buffer.from("old")));
  expect({ mode: (await stat(path)).mode & 0o777, text: await readFile(path, "utf8") }).toEqual({
    mode: shownMode(0o751),
    text: "new",
  });
  expect(await readdir(folder.path)).toEqual(["run.sh"]);
});

test("the target of a link is neither read, written nor removed by the link's path", async () => {
  await using folder = await temporaryFolder({ "inside/a": "old", "outside/a": "old" });
  const files = openFiles();
  const expected = sha256(Buffer.from("old"));
  const outside = join(folder.path, "outside");
  await symlink(join(outside, "a"), join(folder.path, "link"));
  await symlink(outside, join(folder.path, "linked"));
  for (const path of ["link", "linked/a"].map((name) => join(folder.path, name))) {
    await expect(files.read(path)).rejects.toThrow(`${path} now leads to ${join(outside, "a")}`);
    await expect(files.write(path, Buffer.from("new"), expected)).rejects.toThrow(UserError);
    await expect(files.write(path, Buffer.from("new"), null)).rejects.toThrow(UserError);
    await expect(files.remove(path, expected)).rejects.toThrow(UserError);
  }
  for (const path of ["linked/new", "linked/deep/er/new"].map((name) => join(folder.path, name)))
    await expect(files.write(path, Buffer.from("new"), null)).rejects.toThrow(UserError);
  expect(await readdir(outside)).toEqual(["a"]);
  expect(await readFile(join(outside, "a"), "utf8")).toBe("old");
});

test("no system makes folders through a link", async () => {
  await using folder = await temporaryFolder({ "outside/a": "" });
  const outside = join(folder.path, "outside");
  await symlink(outside, join(folder.path, "linked"));
  const path = join(folder.path, "linked/deep/er");
  const make = (platform: NodeJS.Platform, at: string) =>
    withFolder(at, { make: true, platform }, async () => {});
  for (const platform of ["linux", "darwin", "win32"] as const) {
    await expect(make(platform, path)).rejects.toThrow(UserError);
    expect(await readdir(outside)).toEqual(["a"]);
    const real = join(folder.path, platform, "deep");
    await make(platform, real);
    expect(await readdir(real)).toEqual([]);
  }
});

test("a write error names the file's own path, whatever path was used", async () => {
  const name = lacksOddNames ? "a b" : "a\nb";
  await using folder = await temporaryFolder({ [`${name}/c`]: "old" });
  const files = openFiles();
  const taken = join(folder.path, name);
  const long = join(taken, "n".repeat(300));
  const link = join(folder.path, "link");
  await symlink(join(folder.path, "none"), link);
  await expect(files.write(taken, Buffer.from("new"), null)).rejects.toThrow(
    `${taken} is not a regular file.`,
  );
  // Windows checks the length of a name only when the file gets it.
  if (!lacksOddNames)
    await expect(files.write(long, Buffer.from("new"), null)).rejects.toThrow(`open '${long}'`);
  await expect(files.write(join(link, "new"), Buffer.from("new"), null)).rejects.toThrow(
    process.platform === "linux" ? `mkdir '${link}'` : `${link} now leads to `,
  );
});

/** A file written in between may have created the folder again, which then remains. */
function exchange(one: string, other: string): void {
  try {
    renameSync(one, `${one}.away`);
    renameSync(other, one);
    renameSync(`${one}.away`, other);
  } catch {
    rmSync(`${one}.away`, { recursive: true, force: true });
  }
}

/** Other systems cannot hold folders open. */
const onLinux = test.runIf(process.platform === "linux");

onLinux("writes nothing elsewhere while links replace folders again and again", async () => {
  await using folder = await temporaryFolder({ "inside/a": "old", "outside/a": "old" });
  const place = join(folder.path, "inside");
  const link = join(folder.path, "link");
  const outside = join(folder.path, "outside");
  await symlink(outside, link);
  const files = openFiles();
  const swaps = setInterval(() => {
    exchange(place, link);
    setImmediate(() => exchange(place, link));
  }, 1);
  let written = 0;
  // Until one write has found the folder itself: chance decides which of the two exists.
  for (let index = 0; index < 200 || (written === 0 && index < 20_000); index++) {
    const path = join(place, index % 3 === 0 ? `deep${index}/b` : `b${index}`);
    const [outcome] = await Promise.allSettled([files.write(path, Buffer.from("new"), null)]);
    if (outcome.status === "fulfilled") written++;
  }
  clearInterval(swaps);
  expect(written).toBeGreaterThan(0);
  expect(await readdir(outside)).toEqual(["a"]);
});

test("without a system call for it, a file replaces another, which is kept", async () => {
  await using folder = await temporaryFolder({ a: "old", fresh: "new" });
  const [place, fresh] = [join(folder.path, "a"), join(folder.path, "fresh")];
  expect(exchangeByLink(place, fresh)).toBe(true);
  expect([await readFile(place, "utf8"), await readFile(fresh, "utf8")]).toEqual(["new", "old"]);
  expect(await readdir(folder.path)).toEqual(["a", "fresh"]);
  expect(() => exchangeByLink(join(folder.path, "none"), fresh)).toThrow("ENOENT");
});

test("a file with unexpected content is neither replaced nor removed", async () => {
  await using folder = await temporaryFolder({ a: "theirs" });
  const files = openFiles();
  const path = join(folder.path, "a");
  const other = sha256(Buffer.from("mine"));
  await expect(files.write(path, Buffer.from("new"), other)).rejects.toThrow(StaleFile);
  await expect(files.write(path, Buffer.from("new"), null)).rejects.toThrow("exists already");
  await expect(files.write(join(folder.path, "b"), Buffer.from("new"), other)).rejects.toThrow(
    "no longer exists",
  );
  await expect(files.remove(path, other)).rejects.toThrow(StaleFile);
  expect(await readFile(path, "utf8")).toBe("theirs");
  await files.remove(path, sha256(Buffer.from("theirs")));
  expect(await readdir(folder.path)).toEqual([]);
});

test("runs tasks on the same files one after the other, in any order of names", async () => {
  const files = openFiles();
  const order: string[] = [];
  const started = deferred();
  const gate = deferred();
  const first = files.lock(["/a", "/b"], async () => {
    order.push("first begins");
    started.resolve(undefined);
    await gate.promise;
    order.push("first ends");
  });
  const second = files.lock(["/b", "/a", "/b"], async () => void order.push("second"));
  await started.promise;
  await files.lock(["/c"], async () => void order.push("other"));
  gate.resolve(undefined);
  await Promise.all([first, second]);
  expect(order).toEqual(["first begins", "other", "first ends", "second"]);
});

test("snapshots are returned by their hash, from memory and from the disk", async () => {
  await using folder = await temporaryFolder();
  const store = join(folder.path, "snapshots");
  const bytes = Buffer.from("content\n".repeat(1000));
  const hash = await openSnapshots(store).save(bytes);
  expect(hash).toBe(sha256(bytes));
  expect(await openSnapshots(store).load(sha256(bytes))).toEqual(bytes);
  const path = join(store, sha256(bytes).slice(0, 2), sha256(bytes).slice(2));
  expect({
    mode: (await stat(path)).mode & 0o777,
    isSmaller: (await stat(path)).size < bytes.length,
  }).toEqual({
    mode: shownMode(0o600),
    isSmaller: true,
  });
  expect((await stat(store)).mode & 0o777).toBe(shownMode(0o700));
});

test("a snapshot that is too large, unknown, damaged or linked is missing", async () => {
  await using folder = await temporaryFolder({ elsewhere: "x" });
  const snapshots = openSnapshots(folder.path);
  expect(await snapshots.save(Buffer.alloc(snapshotLimitBytes + 1))).toBeUndefined();
  expect(await snapshots.load("0".repeat(64))).toBeUndefined();
  expect(await snapshots.load("../../etc/passwd")).toBeUndefined();
  const bytes = Buffer.from("kept");
  await snapshots.save(bytes);
  const path = join(folder.path, sha256(bytes).slice(0, 2), sha256(bytes).slice(2));
  await writeFile(path, "damaged");
  expect(await openSnapshots(folder.path).load(sha256(bytes))).toBeUndefined();
  expect(await snapshots.load(sha256(bytes))).toEqual(bytes);
  const linked = `${sha256(bytes).slice(0, 2)}${"f".repeat(62)}`;
  await symlink(join(folder.path, "elsewhere"), join(folder.path, linked.slice(0, 2), linked.slice(2)));
  expect(await snapshots.load(linked)).toBeUndefined();
});

test("snapshots with more bytes than fit in memory are all available", async () => {
  await using folder = await temporaryFolder();
  const snapshots = openSnapshots(folder.path);
  const contents = [1, 2, 3].map((fill) => Buffer.alloc(8 * 1024 * 1024, fill));
  const hashes = await Promise.all(contents.map((bytes) => snapshots.save(bytes)));
  for (const [index, hash] of hashes.entries()) {
    expect((await snapshots.load(hash ?? ""))?.equals(contents[index] ?? Buffer.alloc(0))).toBe(true);
  }
});
