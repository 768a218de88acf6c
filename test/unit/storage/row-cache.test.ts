import { lstatSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { newSessionId } from "../../../src/message/ids.ts";
import { JsonStore } from "../../../src/storage/json/json-store.ts";
import { RowCache } from "../../../src/storage/row-cache.ts";
import { toGroups } from "../../../src/storage/row-groups.ts";
import type { SessionRow } from "../../../src/storage/session-list.ts";

const row = (): SessionRow => ({
  id: newSessionId(),
  projectId: "p1",
  parentId: undefined,
  cwd: "/work",
  additionalDirectories: [],
  title: undefined,
  updated: 1,
  isArchived: false,
});

test("removes rows of deleted sessions first when there are more sessions than rows", async () => {
  const root = mkdtempSync(join(tmpdir(), "fairlead-row-cache-"));
  try {
    const store = new JsonStore({ root, log: silentLog });
    const gone = Array.from({ length: 20_000 }, row);
    const stamp = { ino: 1, size: 1, ctimeMs: 1 };
    await store.write(["session_list"], toGroups(gone.map((one) => ({ ...one, ...stamp }))));
    const rows = new RowCache(store, silentLog);
    await rows.open();

    // A file that has not changed for a while.
    const path = import.meta.filename;
    const one = row();
    rows.add(one, lstatSync(path));
    expect(rows.find("p1", one.id, path)).toBeUndefined();
    rows.settle(gone.map(row));
    rows.add(one, lstatSync(path));
    expect(rows.find("p1", one.id, path)).toMatchObject(one);
    const stored = join(root, "session_list.json");
    await vi.waitFor(
      () => expect(JSON.parse(readFileSync(stored, "utf8"))).toMatchObject([{ ids: [one.id] }]),
      {
        timeout: 10_000,
      },
    );
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
