import fs from "node:fs";
import fsPromises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { Journal } from "../../../src/storage/journal.ts";
import { temporaryFolder } from "../../support/temp.ts";

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

/** Lets a rename fail as Windows does if this process has the replaced file open. */
function refuseRenamesOverOpenFiles(): void {
  const paths = new Map<number, fs.PathLike>();
  const { openSync, closeSync, renameSync } = fs;
  const { rename } = fsPromises;
  const assertClosed = (path: fs.PathLike) => {
    if ([...paths.values()].includes(path))
      throw Object.assign(new Error(`EPERM: operation not permitted, rename '${String(path)}'`), {
        code: "EPERM",
      });
  };
  vi.spyOn(fs, "openSync").mockImplementation((path, flags, mode) => {
    const file = openSync(path, flags, mode);
    paths.set(file, path);
    return file;
  });
  vi.spyOn(fs, "closeSync").mockImplementation((file) => {
    paths.delete(file);
    closeSync(file);
  });
  vi.spyOn(fs, "renameSync").mockImplementation((from, to) => {
    assertClosed(to);
    renameSync(from, to);
  });
  vi.spyOn(fsPromises, "rename").mockImplementation(async (from, to) => {
    assertClosed(to);
    await rename(from, to);
  });
  syncBuiltinESMExports();
}

test("a journal that is being written is replaced where open files cannot be", async () => {
  await using place = await temporaryFolder();
  refuseRenamesOverOpenFiles();
  const path = join(place.path, "journal", "ses_1.ndjson");
  const journal = new Journal({
    path,
    temporaryFolder: join(place.path, "tmp"),
    startSeq: 1,
    log: silentLog,
    ready: async () => {},
  });
  journal.append({ type: "remove", seq: 1, messageIds: ["msg_1"] });
  await journal.flush();
  await journal.replace(() => ({ seq: 2, changes: [] }));
  journal.append({ type: "remove", seq: 3, messageIds: ["msg_3"] });
  await journal.close();
  const lines = fs.readFileSync(path, "utf8").trim().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { type: "start", seq: 2 },
    { type: "remove", seq: 3 },
  ]);
});
