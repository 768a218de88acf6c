import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { UserError } from "../../../src/base/errors.ts";
import { silentLog } from "../../../src/base/log.ts";
import { newMessageId, newSessionId } from "../../../src/message/ids.ts";
import type { SessionInfo } from "../../../src/message/message.ts";
import { type RowGroup, toGroups } from "../../../src/storage/row-groups.ts";
import { InvalidCursor, SessionStore } from "../../../src/storage/session-store.ts";
import { shownMode } from "../../support/platform/platform.ts";
import { isLong } from "../../support/run-length.ts";
import {
  all,
  assistantInfo,
  openWriter,
  putSealed,
  recordingLog,
  sessionInfo,
  textPart,
  toolPart,
} from "../../crash/support/stored-session.ts";

let root: string;
let warnings: string[];
let logged: string[];
let store: SessionStore;

const open = () =>
  SessionStore.open({ root, log: recordingLog(logged), onWarning: (warning) => warnings.push(warning) });

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "fairlead-session-store-"));
  warnings = [];
  logged = [];
  store = await open();
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

async function created(fields: Partial<SessionInfo> = {}): Promise<SessionInfo> {
  const info = sessionInfo(fields);
  await store.create(info);
  return info;
}

const waiting = { timeout: 10_000 };
const fileOf = ({ projectId, id }: SessionInfo) => join(root, "session", projectId, `${id}.json`);
const idsIn = (path: string) => readFileSync(path, "utf8").match(/ses_\w+/g);
const journalOf = (id: string) => join(root, "journal", `${id}.ndjson`);
const textsOf = async (id: SessionInfo["id"], from = store) =>
  (await all(from.messages(id))).map(({ parts }) =>
    parts.map((part) => ("text" in part ? part.text : part.type)),
  );

const stamp = { ino: 1, size: 1, ctimeMs: 1 };
const oneRow = {
  id: newSessionId(),
  projectId: "p1",
  parentId: undefined,
  cwd: "/",
  additionalDirectories: [],
  title: undefined,
  updated: 1,
  isArchived: false,
  ...stamp,
};

describe("sessions", () => {
  test("a created session is loaded again by its id alone", async () => {
    const info = await created({ title: "one", parentId: newSessionId() });
    expect(await store.load(info.id)).toEqual(info);
    expect(await (await open()).load(info.id)).toEqual(info);
  });

  test("an unknown session is undefined, opens as missing and is removed silently", async () => {
    const id = newSessionId();
    expect(await store.load(id)).toBeUndefined();
    expect(await store.openSession(id)).toEqual({ status: "missing" });
    await store.remove(id);
    expect(await all(store.messages(id))).toEqual([]);
    expect(await store.todos(id)).toEqual([]);
  });

  test("a session that another store created is found", async () => {
    const other = await open();
    const info = sessionInfo({ projectId: "p2" });
    await other.create(info);
    expect(await store.load(info.id)).toEqual(info);
  });

  test("the writer saves the info and the todos", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    for (let n = 1; n <= 100; n++) writer.saveInfo({ ...info, title: `title ${n}` });
    writer.saveTodos([{ content: "test", status: "pending", priority: "high" }]);
    await writer.close();
    expect(await store.load(info.id)).toEqual({ ...info, title: "title 100" });
    expect(await store.todos(info.id)).toEqual([{ content: "test", status: "pending", priority: "high" }]);
  });

  test("stores a saved session without waiting for later notes of the turn", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    writer.noteInfo({ ...info, cost: 1 });
    await writer.secure();
    expect(await store.load(info.id)).toEqual(info);
    writer.saveInfo({ ...info, cost: 1, title: "now" });
    await expect
      .poll(() => store.load(info.id), { timeout: 900, interval: 5 })
      .toMatchObject({ title: "now" });
    writer.noteInfo({ ...info, cost: 2 });
    await writer.flush();
    expect(await store.load(info.id)).toEqual({ ...info, cost: 2 });
    await writer.close();
  });

  test("a session has one writer", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    expect(await store.openSession(info.id)).toEqual({ status: "busy", pid: process.pid });
    await writer.close();
    await (await openWriter(store, info.id)).close();
  });

  test("stores a new session immediately, and locks it on request or on a write", async () => {
    const info = sessionInfo();
    const writer = await store.createAndOpen(info);
    expect(await (await open()).load(info.id)).toEqual(info);
    await writer.claim();
    expect(await store.openSession(info.id)).toEqual({ status: "busy", pid: process.pid });
    await writer.close();
    await (await openWriter(store, info.id)).close();
  });

  test("a new session is unlocked once closed, even while a flush is awaited", async () => {
    const info = sessionInfo();
    const writer = await store.createAndOpen(info);
    await writer.claim();
    await writer.close();
    await Promise.all([writer.flush(), writer.secure(), writer.claim()]);
    const opened = await store.openSession(info.id);
    expect(opened.status).toBe("opened");
    if (opened.status === "opened") await opened.writer.close();
  });

  test("the first to open a new session keeps it; the other's changes fail", async () => {
    const info = sessionInfo();
    const writer = await store.createAndOpen(info);
    const other = await openWriter(store, info.id);
    writer.putMessage(assistantInfo(info.id));
    await expect(writer.flush()).rejects.toThrow(`is open in process ${process.pid}`);
    await other.close();
    expect(await all(store.messages(info.id))).toEqual([]);
    await writer.flush();
    expect(await all(store.messages(info.id))).toHaveLength(1);
    await writer.close();
  });

  test("a closed writer accepts nothing more and may be closed again", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    await Promise.all([writer.close(), writer.close()]);
    expect(() => writer.putMessage(assistantInfo(info.id))).toThrow("after it was closed");
    expect(() => writer.saveInfo(info)).toThrow("after it was closed");
    expect(existsSync(journalOf(info.id))).toBe(false);
  });

  test("removing deletes children, messages, todos, diff, journal and lock too", async () => {
    const parent = await created();
    const child = await created({ parentId: parent.id });
    const grandchild = await created({ parentId: child.id });
    const other = await created();
    for (const info of [parent, child, grandchild]) {
      const writer = await openWriter(store, info.id);
      putSealed(writer, [textPart("text")]);
      writer.saveTodos([]);
      await writer.close();
      await store.files.write(["session_diff", info.id], []);
    }
    await store.remove(parent.id);
    await store.remove(parent.id);
    const left = readdirSync(root, { recursive: true }).filter((name) => String(name).includes("ses_"));
    expect(left).toEqual([join("session", "p1", `${other.id}.json`)]);
  });

  test("a session that is being written is not removed", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    await expect(store.remove(info.id)).rejects.toThrow(UserError);
    expect(await store.load(info.id)).toEqual(info);
    await writer.close();
  });
});

describe("the list", () => {
  const list = async (query: Partial<Parameters<SessionStore["list"]>[0]> = {}) =>
    store.list({ limit: 100, ...query });

  test("is ordered by the last update, newest first, and paged without losing ties", async () => {
    const infos: SessionInfo[] = [];
    for (let n = 0; n < 10; n++) {
      infos.push(await created({ projectId: `p${n % 2}`, time: { created: 1, updated: n < 6 ? 5 : n } }));
    }
    const expected = infos.sort((a, b) => b.time.updated - a.time.updated || (a.id < b.id ? 1 : -1));
    const found: SessionInfo[] = [];
    let cursor: string | undefined;
    do {
      const page = await list({ limit: 3, ...(cursor === undefined ? {} : { cursor }) });
      found.push(...page.sessions);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(found).toEqual(expected);
  });

  test("keeps its position when sessions come, go and change between pages", async () => {
    const infos: SessionInfo[] = [];
    for (let n = 1; n <= 6; n++) infos.push(await created({ time: { created: 1, updated: n } }));
    const first = await list({ limit: 2 });
    await created({ time: { created: 1, updated: 99 } });
    const last = first.sessions[1];
    if (last) await store.remove(last.id);
    const second = await list({ limit: 2, cursor: first.nextCursor });
    expect(second.sessions).toEqual([infos[3], infos[2]]);
  });

  test("filters by project, folder and parent, and hides children and archived sessions", async () => {
    const plain = await created({ time: { created: 1, updated: 1 } });
    const child = await created({ parentId: plain.id, time: { created: 1, updated: 2 } });
    const archived = await created({ time: { created: 1, updated: 3, archived: 4 } });
    const elsewhere = await created({ projectId: "p2", cwd: "/other", time: { created: 1, updated: 4 } });
    expect(await list()).toEqual({ sessions: [elsewhere, plain] });
    expect(await list({ projectId: "p1" })).toEqual({ sessions: [plain] });
    expect(await list({ cwd: "/other" })).toEqual({ sessions: [elsewhere] });
    expect(await list({ parentId: plain.id })).toEqual({ sessions: [child] });
    expect(await list({ includeArchived: true })).toEqual({ sessions: [elsewhere, archived, plain] });
    expect(await list({ projectId: "none" })).toEqual({ sessions: [] });
  });

  test("sees at once what another store changed", async () => {
    const info = await created();
    await list();
    const other = await open();
    for (let n = 0; n < 20; n++) {
      const changed = { ...info, title: `t${n}`, time: { created: 1, updated: n } };
      await other.create(changed);
      expect(await list({ projectId: "p1" })).toEqual({ sessions: [changed] });
    }
    await other.remove(info.id);
    expect(await list()).toEqual({ sessions: [] });
  });

  test("pages through its first state, plus the changes of this process", async () => {
    const named = (title: string, updated: number) => created({ title, time: { created: 1, updated } });
    await named("newest", 4);
    const second = await named("second", 3);
    const third = await named("third", 2);
    const last = await named("last", 1);
    const check = vi.spyOn(store.files, "fileNames");
    const page = async (cursor?: string) => {
      const { sessions, nextCursor } = await store.listRows({ limit: 1, ...(cursor && { cursor }) });
      return { titles: sessions.map(({ title }) => title), nextCursor };
    };

    const first = await page();
    expect(first.titles).toEqual(["newest"]);
    const other = await open();
    await other.create({ ...second, title: "changed elsewhere" });
    const next = await page(first.nextCursor);
    expect(next.titles).toEqual(["second"]);
    expect(check).toHaveBeenCalledTimes(1);

    await store.create({ ...third, title: "changed here" });
    const after = await page(next.nextCursor);
    expect(after.titles).toEqual(["changed here"]);
    await store.remove(last.id);
    expect(await page(after.nextCursor)).toEqual({ titles: [], nextCursor: undefined });
    expect((await page(first.nextCursor)).titles).toEqual(["changed elsewhere"]);
  });

  test("is cached for later processes, which read only what changed since", async () => {
    const sessions = Array.from({ length: 120 }, (_, n) => sessionInfo({ time: { created: 1, updated: n } }));
    mkdirSync(join(root, "session", "p1"));
    for (const info of sessions) writeFileSync(fileOf(info), JSON.stringify(info));
    const [gone, changed, torn] = sessions;
    if (!gone || !changed || !torn) throw new Error("no sessions");
    const remaining = join(root, "session_list.json");
    // The modification times of a new file and its successor differ only after a moment.
    await vi.waitFor(async () => {
      await list({ limit: 1 });
      expect(existsSync(remaining)).toBe(true);
    }, waiting);

    // The cached value is used, even if it differs from the files.
    const [newest] = (await list({ limit: 1 })).sessions;
    expect(newest).toEqual(sessions.at(-1));
    const [group]: RowGroup[] = JSON.parse(readFileSync(remaining, "utf8"));
    const updated = group?.updated.map((time) => (time === 10 ? 1_000 : time));
    writeFileSync(remaining, JSON.stringify([{ ...group, updated }]));
    store = await open();
    expect((await list({ limit: 1 })).sessions).toEqual([sessions[10]]);

    rmSync(fileOf(gone));
    writeFileSync(fileOf(torn), "torn");
    await store.create({ ...changed, time: { created: 1, updated: 2_000 } });
    const added = await created({ time: { created: 1, updated: 3_000 } });
    store = await open();
    const found = (await list({ limit: 1_000 })).sessions.map(({ id }) => id);
    expect(found.slice(0, 3)).toEqual([added.id, changed.id, sessions[10]?.id]);
    expect(found).toHaveLength(119);
    await vi.waitFor(() => expect(readFileSync(remaining, "utf8")).not.toContain(gone.id), waiting);
  });

  test("adds many sessions to the cache and reads them unchanged", async () => {
    const remaining = join(root, "session_list.json");
    const first = await Promise.all(Array.from({ length: 100 }, () => created()));
    await store.close();
    expect(idsIn(remaining)).toHaveLength(100);

    store = await open();
    const [oldest = sessionInfo()] = first;
    const renamed = { ...oldest, title: "Renamed", time: { created: 1, updated: 3_000 } };
    await store.create(renamed);
    const second = await Promise.all(Array.from({ length: 100 }, () => created()));
    await vi.waitFor(() => expect(idsIn(remaining)).toHaveLength(200), waiting);
    const read = vi.spyOn(store.files, "peek");
    expect((await list({ limit: 1 })).sessions).toEqual([renamed]);
    expect(read).toHaveBeenCalledTimes(1);
    const all = (await list({ limit: 1_000 })).sessions.map(({ id }) => id);
    expect(all.sort()).toEqual([...first, ...second].map(({ id }) => id).sort());
  });

  test("is stored once when many sessions are removed, not for each", async () => {
    const sessions = Array.from({ length: 120 }, () => sessionInfo());
    mkdirSync(join(root, "session", "p1"));
    for (const info of sessions) writeFileSync(fileOf(info), JSON.stringify(info));
    const remaining = join(root, "session_list.json");
    await vi.waitFor(async () => {
      await list({ limit: 1 });
      expect(existsSync(remaining)).toBe(true);
    }, waiting);
    const write = vi.spyOn(store.files, "write");
    for (const { id } of sessions.slice(0, 20)) await store.remove(id);
    await list({ limit: 1 });
    await vi.waitFor(() => expect(idsIn(remaining)).toHaveLength(100), waiting);
    expect(write.mock.calls.length).toBeLessThan(10);
  });

  test.each([
    "torn",
    "[1]",
    "{}",
    '[{"ids":["ses_1"]}]',
    JSON.stringify(toGroups([oneRow]).map((group) => ({ ...group, inos: [] }))),
    JSON.stringify(toGroups([oneRow]).map((group) => ({ ...group, ids: [1], titles: ["one", {}] }))),
  ])("ignores a cache that was stored as %s", async (text) => {
    const info = await created();
    writeFileSync(join(root, "session_list.json"), text);
    expect(await list()).toEqual({ sessions: [info] });
    expect(warnings).toEqual([]);
  });

  test.each(["", "x", "bm8", "WzEsMl0", Buffer.from('[1,"../x"]').toString("base64url")])(
    "rejects the cursor %j",
    async (cursor) => {
      await expect(list({ cursor })).rejects.toThrow(InvalidCursor);
    },
  );

  test("continues without a session whose file is damaged or belongs to another", async () => {
    const good = await created();
    const torn = await created();
    const foreign = await created();
    writeFileSync(join(root, "session", "p1", `${torn.id}.json`), "\0\0\0");
    writeFileSync(join(root, "session", "p1", `${foreign.id}.json`), JSON.stringify(good));
    expect(await list()).toEqual({ sessions: [good] });
    expect(warnings.sort()).toEqual(
      [
        `${join(root, "session", "p1", `${torn.id}.json`)} could not be read (contains NUL bytes). It was renamed to .corrupt in the same folder.`,
        `${join(root, "session", "p1", `${foreign.id}.json`)} could not be read (belongs to another session). It was renamed to .corrupt in the same folder.`,
      ].sort(),
    );
  });
});

describe("messages", () => {
  test("are returned as they were stored, oldest or newest first", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    const messages = Array.from({ length: 150 }, (_, n) =>
      putSealed(writer, [textPart(`${n}`), toolPart("done")]),
    );
    await writer.flush();
    expect(await all(store.messages(info.id))).toEqual(messages);
    expect(await all(store.messagesFromNewest(info.id))).toEqual(messages.toReversed());
    await writer.close();
    expect(await all((await open()).messages(info.id))).toEqual(messages);
  });

  test("that are still being written are read from the journal", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    const message = assistantInfo(info.id);
    const part = textPart("one");
    writer.putMessage(message);
    writer.putPart(message.id, part);
    writer.append(message.id, part.id, " two");
    await writer.flush();
    writer.append(message.id, part.id, " three");
    await writer.flush();
    expect(existsSync(join(root, "message", info.id))).toBe(false);
    expect(await all(store.messages(info.id))).toEqual([
      { info: message, parts: [{ ...part, text: "one two three" }] },
    ]);
    await writer.close();
  });

  test("are not changed when the caller changes the objects later", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    const message = assistantInfo(info.id);
    const part = textPart("");
    writer.putMessage(message);
    writer.putPart(message.id, part);
    for (const delta of ["a", "b", "c"]) {
      part.text += delta;
      writer.append(message.id, part.id, delta);
    }
    await writer.flush();
    expect(await textsOf(info.id)).toEqual([["abc"]]);
    writer.seal(message.id);
    await writer.close();
    expect(await textsOf(info.id)).toEqual([["abc"]]);
  });

  test("leave only its start and the closed session in the journal once they are sealed", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    putSealed(writer, [textPart("text")]);
    await writer.close();
    expect(readFileSync(journalOf(info.id), "utf8")).toBe(
      `{"type":"start","seq":2}\n${JSON.stringify({ type: "session", seq: 2, info })}\n`,
    );
    expect(statSync(journalOf(info.id)).mode & 0o777).toBe(shownMode(0o600));
  });

  test("keep the journal below its limit while the session is open, once they are sealed", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    for (let count = 0; count < 20; count++) {
      putSealed(writer, [textPart("x".repeat(10_000))]);
      await writer.flush();
      expect(statSync(journalOf(info.id)).size).toBeLessThan(75_000);
    }
    await writer.close();
    expect(await textsOf(info.id, await open())).toHaveLength(20);
  });

  test("can be changed after they were sealed, in a later process too", async () => {
    const info = await created();
    const first = await openWriter(store, info.id);
    const part = textPart("one");
    const { info: message } = putSealed(first, [part, textPart("other")]);
    first.append(message.id, part.id, " two");
    await first.close();
    expect(await textsOf(info.id)).toEqual([["one two", "other"]]);
    const again = await open();
    const second = await openWriter(again, info.id);
    second.append(message.id, part.id, " three");
    await second.flush();
    expect(await textsOf(info.id)).toEqual([["one two three", "other"]]);
    second.seal(message.id);
    await second.close();
    expect(await textsOf(info.id)).toEqual([["one two three", "other"]]);
  });

  test("that were removed do not return", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    putSealed(writer, [textPart("kept")]);
    const sealed = putSealed(writer, [textPart("gone")]);
    const live = assistantInfo(info.id);
    writer.putMessage(live);
    await writer.flush();
    await writer.removeMessages([sealed.info.id, live.id, newMessageId()]);
    expect(await textsOf(info.id)).toEqual([["kept"]]);
    await writer.close();
    expect(await textsOf(info.id, await open())).toEqual([["kept"]]);
  });

  test("need about their own size on disk", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    let bytes = 0;
    for (let n = 0; n < 40; n++) {
      const message = assistantInfo(info.id);
      const part = textPart("");
      writer.putMessage(message);
      writer.putPart(message.id, part);
      for (let k = 0; k < 500; k++) {
        writer.append(message.id, part.id, "a delta of text ");
        bytes += 16;
      }
      writer.seal(message.id);
      await writer.flush();
    }
    await writer.close();
    const stored = readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
    expect(stored).toBeLessThan(bytes * 1.2);
  });

  const many = isLong ? 2_000 : 200;
  test(`${many} of them load quickly, and the newest at once`, async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    for (let n = 0; n < many; n++) {
      putSealed(writer, [
        ...Array.from({ length: 4 }, () => textPart("some text ".repeat(50))),
        toolPart("x".repeat(500)),
      ]);
      if (n % 50 === 0) await writer.flush();
    }
    await writer.close();
    const started = performance.now();
    expect(await all(store.messages(info.id))).toHaveLength(many);
    // About 200 ms and 5 ms; the remaining time is for a busy machine.
    expect(performance.now() - started).toBeLessThan(5_000);
    const sought = performance.now();
    for await (const message of store.messagesFromNewest(info.id)) {
      expect(message.parts).toHaveLength(5);
      break;
    }
    expect(performance.now() - sought).toBeLessThan(1_000);
  });
});

describe("a damaged store", () => {
  const damages: Record<string, (path: string) => void> = {
    empty: (path) => writeFileSync(path, ""),
    torn: (path) => writeFileSync(path, readFileSync(path, "utf8").slice(0, 20)),
    "all NUL": (path) => writeFileSync(path, Buffer.alloc(readFileSync(path).length)),
    "half NUL": (path) => {
      const bytes = readFileSync(path);
      writeFileSync(path, bytes.fill(0, Math.floor(bytes.length / 2)));
    },
    text: (path) => writeFileSync(path, "hello\nworld\n"),
    "a number": (path) => writeFileSync(path, "-17"),
    null: (path) => writeFileSync(path, "null"),
    "an empty list of the wrong kind": (path) => writeFileSync(path, "[{}]"),
    "an empty object": (path) => writeFileSync(path, "{}"),
    binary: (path) => writeFileSync(path, Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0x10])),
    "UTF-16": (path) => writeFileSync(path, Buffer.from("{}", "utf16le")),
    "truncated by one byte": (path) => writeFileSync(path, readFileSync(path).subarray(0, -2)),
    doubled: (path) => writeFileSync(path, readFileSync(path, "utf8").repeat(2)),
    "a folder": (path) => {
      rmSync(path);
      mkdirSync(path);
    },
    "a link": (path) => {
      renameSync(path, join(root, "elsewhere"));
      symlinkSync(join(root, "elsewhere"), path);
    },
    "a link to nothing": (path) => {
      rmSync(path);
      symlinkSync("nowhere", path);
    },
    "very deep": (path) => writeFileSync(path, "[".repeat(100_000)),
  };

  for (const [name, damage] of Object.entries(damages)) {
    test(`any one file that is ${name} leaves the rest readable and writable`, async () => {
      const info = await created();
      const writer = await openWriter(store, info.id);
      const first = putSealed(writer, [textPart("first")]);
      putSealed(writer, [textPart("second")]);
      writer.saveTodos([{ content: "test", status: "pending", priority: "high" }]);
      await writer.close();
      const other = await created();
      const kinds = {
        message: join(root, "message", info.id, `${first.info.id}.json`),
        todo: join(root, "todo", `${info.id}.json`),
        journal: journalOf(info.id),
        lock: join(root, "lock", `${info.id}.lock`),
        session: join(root, "session", "p1", `${info.id}.json`),
        migration: join(root, "migration.json"),
      };
      const { lock, session, ...contents } = kinds;
      const version = readFileSync(kinds.migration);
      for (const path of Object.values(contents)) damage(path);
      // A doubled version is a higher version, which is rejected for a good reason.
      if (name === "doubled") writeFileSync(kinds.migration, version);
      const again = await open();
      const texts = await textsOf(info.id, again);
      expect(texts.at(-1)).toEqual(["second"]);
      await again.todos(info.id);
      const reopened = await openWriter(again, info.id);
      putSealed(reopened, [textPart("third")]);
      await reopened.close();
      expect((await textsOf(info.id, again)).at(-1)).toEqual(["third"]);
      damage(session);
      expect((await (await open()).list({ limit: 9 })).sessions).toContainEqual(other);
      expect(existsSync(lock)).toBe(true);
    });
  }

  test("a message that cannot be read is named, kept and left out", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    putSealed(writer, [textPart("first")]);
    const bad = putSealed(writer, [textPart("bad")]);
    putSealed(writer, [textPart("last")]);
    await writer.close();
    const path = join(root, "message", info.id, `${bad.info.id}.json`);
    writeFileSync(path, "{");
    expect(await textsOf(info.id)).toEqual([["first"], ["last"]]);
    expect(warnings).toEqual([expect.stringContaining(path)]);
    expect(readFileSync(`${path}.corrupt-1`, "utf8")).toBe("{");
  });

  test("ignores a torn last line of the journal, and saves invalid bytes from its middle", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    const message = assistantInfo(info.id);
    const part = textPart("one");
    writer.putMessage(message);
    writer.putPart(message.id, part);
    await writer.close();
    const delta = { type: "delta", messageId: message.id, partId: part.id };
    appendFileSync(journalOf(info.id), `garbage\n${JSON.stringify({ ...delta, seq: 3, delta: " two" })}\n`);
    appendFileSync(journalOf(info.id), JSON.stringify({ ...delta, seq: 4, delta: " three" }).slice(0, -3));
    const damaged = readFileSync(journalOf(info.id), "utf8");
    expect(await textsOf(info.id)).toEqual([["one two"]]);
    expect(logged).toEqual(["unreadable journal lines skipped"]);
    const second = await openWriter(store, info.id);
    expect(readFileSync(`${journalOf(info.id)}.corrupt-1`, "utf8")).toBe(damaged);
    second.append(message.id, part.id, " four");
    await second.close();
    expect(await textsOf(info.id)).toEqual([["one two four"]]);
  });

  test("zeros that a power loss left at the end of the journal are ignored", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    const message = assistantInfo(info.id);
    writer.putMessage(message);
    writer.putPart(message.id, textPart("one"));
    await writer.close();
    appendFileSync(journalOf(info.id), `{"type":"del${"\0".repeat(300)}`);
    const second = await openWriter(store, info.id);
    await second.close();
    expect(await textsOf(info.id)).toEqual([["one"]]);
    expect(logged).toEqual([]);
  });

  test("a lost journal does not make later changes look old", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    const part = textPart("one");
    const { info: message } = putSealed(writer, [part]);
    for (let n = 0; n < 10; n++) putSealed(writer, [textPart("x")]);
    await writer.close();
    rmSync(journalOf(info.id));
    const second = await openWriter(store, info.id);
    second.append(message.id, part.id, " two");
    await second.flush();
    expect((await textsOf(info.id))[0]).toEqual(["one two"]);
    await second.close();
  });
});

describe("a disk that rejects writes", () => {
  /** Works for every user, including root, unlike permissions. */
  function block(folder: string): () => void {
    if (existsSync(folder)) renameSync(folder, `${folder}-away`);
    writeFileSync(folder, "in the way");
    return () => {
      rmSync(folder);
      if (existsSync(`${folder}-away`)) renameSync(`${folder}-away`, folder);
    };
  }

  test.each(["journal", "message", "session", "todo", "tmp"])(
    "rejects at the flush if %s is not writable, and a later flush writes everything",
    async (kind) => {
      const info = await created();
      const writer = await openWriter(store, info.id);
      const unblock = block(join(root, kind));
      const message = putSealed(writer, [textPart("kept")]);
      writer.saveInfo({ ...info, title: "kept" });
      writer.saveTodos([]);
      const failing = writer.flush();
      await expect(failing).rejects.toThrow(UserError);
      await expect(failing).rejects.toThrow(/there is a file where a folder should be/);
      const live = assistantInfo(info.id);
      writer.putMessage(live);
      await expect(writer.flush()).rejects.toThrow(UserError);
      unblock();
      await writer.close();
      expect(await all(store.messages(info.id))).toEqual([message, { info: live, parts: [] }]);
      expect(await store.load(info.id)).toEqual({ ...info, title: "kept" });
    },
  );

  test("closing on a failing disk still lets others open the session", async () => {
    const info = await created();
    const writer = await openWriter(store, info.id);
    const unblock = block(join(root, "journal"));
    putSealed(writer, [textPart("lost")]);
    await expect(writer.close()).rejects.toThrow(UserError);
    unblock();
    await (await openWriter(store, info.id)).close();
  });

  test("a store that cannot be created names the folder and what to do", async () => {
    const path = join(root, "file");
    writeFileSync(path, "");
    const failing = SessionStore.open({ root: join(path, "store"), log: silentLog });
    await expect(failing).rejects.toThrow(UserError);
    await expect(failing).rejects.toThrow(dirname(join(path, "store", "x")));
  });
});
