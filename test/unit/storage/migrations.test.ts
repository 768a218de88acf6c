import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { UserError } from "../../../src/base/errors.ts";
import { silentLog } from "../../../src/base/log.ts";
import { JsonStore } from "../../../src/storage/json/json-store.ts";
import { migrate, type Migration } from "../../../src/storage/json/migrations.ts";
import { shownMode } from "../../support/platform/platform.ts";

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

const path = () => join(root, "migration.json");
const stored = (): unknown => JSON.parse(readFileSync(path(), "utf8"));

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
  expect(stored()).toEqual({ version: 1, migrations: ["create the layout"] });
  expect(statSync(join(root, "session")).mode & 0o777).toBe(shownMode(0o700));
});

test("each migration runs once, in order, and later ones when they come", async () => {
  const ran: string[] = [];
  await migrate(openStore(), silentLog, recorded(["one", "two"], ran));
  await migrate(openStore(), silentLog, recorded(["one", "two", "three"], ran));
  await migrate(openStore(), silentLog, recorded(["one", "two", "three"], ran));
  expect(ran).toEqual(["one", "two", "three"]);
});

test("two parallel starts run each migration once", async () => {
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

test("a store of a newer version is rejected and not changed", async () => {
  writeFileSync(path(), JSON.stringify({ version: 2, migrations: ["create the layout", "a later one"] }));
  const refused = migrate(openStore(), silentLog);
  await expect(refused).rejects.toThrow(UserError);
  await expect(refused).rejects.toThrow(/store version 2, known is 1.*Update it/);
  expect(readdirSync(root)).toEqual(["migration.json"]);
});

test("the plain number of an older store is read, and stored with its migrations", async () => {
  const ran: string[] = [];
  writeFileSync(path(), "1");
  await migrate(openStore(), silentLog, recorded(["one", "two"], ran));
  expect(ran).toEqual(["two"]);
  expect(stored()).toEqual({ version: 2, migrations: ["one", "two"] });
});

test.each([
  ["a number that is written twice", "11"],
  ["another number", "99"],
  ["a version with other migrations", '{"version":1,"migrations":["something else"]}'],
  ["a version with fewer migrations", '{"version":12,"migrations":["create the layout"]}'],
  ["a version without migrations", '{"version":7}'],
])("%s is moved aside, and the store opens", async (_, text) => {
  writeFileSync(path(), text);
  const warnings: string[] = [];
  const store = new JsonStore({ root, log: silentLog, onQuarantine: (moved) => warnings.push(moved) });
  await migrate(store, silentLog);
  expect(stored()).toEqual({ version: 1, migrations: ["create the layout"] });
  expect(readFileSync(`${path()}.corrupt-1`, "utf8")).toBe(text);
  expect(warnings).toEqual([path()]);
});
