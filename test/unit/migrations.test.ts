import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { UserError } from "../../src/base/errors.ts";
import { silentLog } from "../../src/base/log.ts";
import { JsonStore } from "../../src/storage/json-store.ts";
import { migrate, type Migration } from "../../src/storage/migrations.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "fairlead-migrations-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const openStore = () => new JsonStore({ root, log: silentLog });

function recorded(names: string[], ran: string[]): Migration[] {
  return names.map((name) => ({
    name,
    async run() {
      ran.push(name);
      await Promise.resolve();
    },
  }));
}

test("a new store gets its folders and its version", async () => {
  await migrate(openStore(), silentLog);
  expect(readdirSync(root).sort()).toEqual(
    [
      "journal",
      "lock",
      "message",
      "migration.json",
      "permission",
      "project",
      "session",
      "session_diff",
      "tmp",
      "todo",
    ].sort(),
  );
  expect(readFileSync(join(root, "migration.json"), "utf8")).toBe("1");
  expect(statSync(join(root, "session")).mode & 0o777).toBe(0o700);
});

test("each migration runs once, in order, and later ones when they come", async () => {
  const ran: string[] = [];
  await migrate(openStore(), silentLog, recorded(["one", "two"], ran));
  await migrate(openStore(), silentLog, recorded(["one", "two", "three"], ran));
  await migrate(openStore(), silentLog, recorded(["one", "two", "three"], ran));
  expect(ran).toEqual(["one", "two", "three"]);
});

test("two that start together run each migration once", async () => {
  const ran: string[] = [];
  await Promise.all([1, 2, 3].map(() => migrate(openStore(), silentLog, recorded(["one", "two"], ran))));
  expect(ran).toEqual(["one", "two"]);
});

test("a migration that failed runs again at the next start, those before it do not", async () => {
  const ran: string[] = [];
  const failing: Migration = { name: "two", run: () => Promise.reject(new Error("broken")) };
  await expect(migrate(openStore(), silentLog, [...recorded(["one"], ran), failing])).rejects.toThrow(
    "broken",
  );
  await migrate(openStore(), silentLog, recorded(["one", "two"], ran));
  expect(ran).toEqual(["one", "two"]);
});

test("a store of a newer version is refused and left as it is", async () => {
  writeFileSync(join(root, "migration.json"), "7");
  const refused = migrate(openStore(), silentLog);
  await expect(refused).rejects.toThrow(UserError);
  await expect(refused).rejects.toThrow(/store version 7, known is 1.*Update it/);
  expect(readdirSync(root)).toEqual(["migration.json"]);
});
