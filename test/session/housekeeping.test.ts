import { mkdirSync, readdirSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { Housekeeping, type SessionAges } from "../../src/reports/housekeeping.ts";
import { acquireStoreLease } from "../../src/storage/json/lock.ts";
import { SessionStore } from "../../src/storage/session-store.ts";
import {
  openWriter,
  putSealed,
  recordingLog,
  sessionInfo,
  textPart,
  toolPart,
} from "../crash/support/stored-session.ts";
import { story } from "../support/editor/story.ts";
import { temporaryFolder, type TemporaryFolder } from "../support/temp.ts";

const dayMs = 24 * 3_600_000;
const daysAgo = (days: number) => Date.now() - days * dayMs;

let folder: TemporaryFolder;
let store: SessionStore;
let logged: string[];
let ages: SessionAges;
let stored: Housekeeping[];

beforeEach(async () => {
  folder = await temporaryFolder();
  store = await SessionStore.open({ root: join(folder.path, "storage"), log: silentLog });
  logged = [];
  ages = { archiveAfterDays: undefined, removeAfterDays: undefined };
  stored = [];
});
afterEach(async () => {
  for (const housekeeping of stored) await housekeeping.close();
  await folder.remove();
});

function open(): Housekeeping {
  const housekeeping = new Housekeeping({
    store: async () => store,
    outputFolder: join(folder.path, "tool-output"),
    snapshotFolder: join(folder.path, "snapshot"),
    ages: async () => ages,
    log: recordingLog(logged),
  });
  stored.push(housekeeping);
  return housekeeping;
}

/** Writes a file that was last changed this number of days ago. */
function put(name: string, days: number): string {
  const path = join(folder.path, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "content");
  setAge(path, days);
  return path;
}

function setAge(path: string, days: number): void {
  utimesSync(path, daysAgo(days) / 1000, daysAgo(days) / 1000);
}

const filesIn = (name: string) =>
  readdirSync(join(folder.path, name), { recursive: true, encoding: "utf8" }).sort();
const hashOf = (letter: string) => letter.repeat(64);
const blobOf = (letter: string) => join("snapshot", letter.repeat(2), letter.repeat(62));

async function storeSession(days: number, fields: Parameters<typeof sessionInfo>[0] = {}) {
  const info = sessionInfo({ time: { created: 1, updated: daysAgo(days) }, ...fields });
  await store.create(info);
  return info;
}

test("truncated outputs are deleted after seven days", async () => {
  put("tool-output/tool_old", 7.1);
  put("tool-output/bash-old.txt", 300);
  put("tool-output/tool_young", 6.9);
  put("tool-output/folder/inside", 300);
  expect(await open().runIfDue()).toBe(true);
  expect(filesIn("tool-output")).toEqual(["folder", "folder/inside", "tool_young"]);
});

test("a link in place of the outputs leads nowhere", async () => {
  put("elsewhere/tool_old", 30);
  symlinkSync(join(folder.path, "elsewhere"), join(folder.path, "tool-output"));
  await open().runIfDue();
  expect(filesIn("elsewhere")).toEqual(["tool_old"]);
});

test("nothing is done without stored files", async () => {
  expect(await open().runIfDue()).toBe(true);
  expect(logged).toEqual([]);
});

test("runs of all processes are an hour apart, also when the clock jumps", async () => {
  expect(await open().runIfDue()).toBe(true);
  expect([await open().runIfDue(), await open().runIfDue()]).toEqual([false, false]);
  await store.files.write(["housekeeping"], { time: daysAgo(0.05) });
  expect(await open().runIfDue()).toBe(true);
  await store.files.write(["housekeeping"], { time: daysAgo(-400) });
  expect(await open().runIfDue()).toBe(true);
});

test("only one process at a time does housekeeping", async () => {
  put("tool-output/tool_old", 8);
  const lease = await acquireStoreLease(store.files, "housekeeping");
  expect(await open().runIfDue()).toBe(false);
  if (lease.status === "held") await lease.release();
  expect(await open().runIfDue()).toBe(true);
  expect(filesIn("tool-output")).toEqual([]);
});

test("contents of changed files remain while a session names them or they are new", async () => {
  const info = await storeSession(0);
  const used = toolPart("edited");
  if (used.state.status === "completed") {
    const change = { path: "/a", operation: "update", additions: 1, deletions: 1 } as const;
    used.state.changes = [{ ...change, before: hashOf("a"), after: hashOf("b") }];
  }
  const writer = await openWriter(store, info.id);
  putSealed(writer, [used]);
  await writer.close();
  for (const letter of ["a", "b", "c"]) put(blobOf(letter), 31);
  put(blobOf("d"), 29);
  await open().runIfDue();
  const left = filesIn("snapshot").filter((name) => name.length > 2);
  expect(left).toEqual(["a", "b", "d"].map((letter) => blobOf(letter).slice("snapshot/".length)));
  // A file in use gets a new time, so that it counts as recent.
  expect(Date.now() - statSync(join(folder.path, blobOf("a"))).mtimeMs).toBeLessThan(dayMs);
});

test("sessions stay forever unless the settings say otherwise", async () => {
  const info = await storeSession(10_000);
  await open().runIfDue();
  expect(await store.load(info.id)).toEqual(info);
});

test("archives or removes old sessions with their children, and keeps recent ones", async () => {
  ages = { archiveAfterDays: 10, removeAfterDays: 100 };
  const young = await storeSession(9);
  const old = await storeSession(11);
  const ancient = await storeSession(101);
  const child = await storeSession(101, { parentId: ancient.id });
  await open().runIfDue();
  expect(await store.load(young.id)).toEqual(young);
  const archived = { ...old, time: { ...old.time, archived: expect.closeTo(Date.now(), -5) } };
  expect(await store.load(old.id)).toEqual(archived);
  expect([await store.load(ancient.id), await store.load(child.id)]).toEqual([undefined, undefined]);
  const { sessions } = await store.list({ limit: 10 });
  expect(sessions).toEqual([young]);
});

test("an open session is not changed, even if it is old", async () => {
  ages = { archiveAfterDays: 10, removeAfterDays: 100 };
  const [old, ancient] = [await storeSession(11), await storeSession(101)];
  const writers = [await openWriter(store, old.id), await openWriter(store, ancient.id)];
  await open().runIfDue();
  expect([await store.load(old.id), await store.load(ancient.id)]).toEqual([old, ancient]);
  for (const writer of writers) await writer.close();
});

test("a session that cannot be read blocks nothing", async () => {
  ages = { archiveAfterDays: 10, removeAfterDays: undefined };
  const broken = await storeSession(20);
  writeFileSync(store.files.pathOf(["session", "p1", broken.id]), "{");
  const old = await storeSession(20);
  const writer = await openWriter(store, old.id);
  putSealed(writer, [textPart("kept")]);
  await writer.close();
  await open().runIfDue();
  expect((await store.load(old.id))?.time.archived).toBeDefined();
});

test("a turn's end schedules one run, and closing does not wait for a run not started", async () => {
  const housekeeping = open();
  for (let turn = 0; turn < 3; turn++) housekeeping.onTurnEnd();
  await housekeeping.close();
  expect(await open().runIfDue()).toBe(true);
});

test("the program runs housekeeping after a turn, with the user's settings only", async () => {
  const project = { "fairlead.json": '{"sessions":{"remove_after_days":1}}' };
  const options = { files: project, config: { sessions: { archive_after_days: 10 } } };
  await story(options, async ({ editor, model, home, repository }) => {
    const data = join(home.path, ".local/share/fairlead");
    const sessions = await SessionStore.open({ root: join(data, "storage"), log: silentLog });
    const old = sessionInfo({ cwd: repository.path, time: { created: 1, updated: daysAgo(11) } });
    await sessions.create(old);
    const output = join(data, "tool-output/tool_old");
    mkdirSync(dirname(output));
    writeFileSync(output, "content");
    setAge(output, 8);
    const { sessionId } = await editor.newSession();
    model.reply("Hello.");
    await editor.prompt(sessionId, "Hello");
    const archived = async () => (await sessions.load(old.id))?.time.archived;
    await expect.poll(archived, { timeout: 10_000 }).toBeDefined();
    expect(readdirSync(dirname(output))).toEqual([]);
  });
});
