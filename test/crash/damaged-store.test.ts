import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { deflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { newMessageId, newSessionId, type SessionId } from "../../src/message/ids.ts";
import { SessionStore } from "../../src/storage/session-store.ts";
import type { Editor } from "../support/editor/editor.ts";
import { expectFailure } from "../support/failure.ts";
import { isLong } from "../support/run-length.ts";
import { type StoryContext, story } from "../support/editor/story.ts";
import { temporaryFolder } from "../support/temp.ts";
import { thoughtText } from "../support/transcript.ts";
import { type Item, itemsOf } from "./support/conversation.ts";
import { damages } from "./support/damage.ts";
import { assistantInfo, openWriter, sessionInfo, textPart, toolPart } from "./support/stored-session.ts";

const [before, after] = ["a".repeat(64), "b".repeat(64)];

/** One session for each kind of damaged file, and two undamaged ones. */
const newIds = () => ({
  session: newSessionId(),
  message: newSessionId(),
  todo: newSessionId(),
  journal: newSessionId(),
  lock: newSessionId(),
  session_diff: newSessionId(),
  snapshot: newSessionId(),
  none: newSessionId(),
  other: newSessionId(),
});
type Ids = ReturnType<typeof newIds>;
type Kind = keyof Ids;

interface Store {
  root: string;
  ids: Ids;
  /** The damaged file of each kind. */
  victims: [kind: string, path: string, other: string][];
}

async function fill({ home, repository }: Pick<StoryContext, "home" | "repository">): Promise<Store> {
  const data = join(home.path, ".local/share/fairlead");
  const root = join(data, "storage");
  const store = await SessionStore.open({ root, log: silentLog });
  const ids = newIds();
  for (const [kind, id] of Object.entries(ids)) {
    await store.create(sessionInfo({ id, projectId: "p1", cwd: repository.path, title: `of ${kind}` }));
    await write(store, id);
  }
  for (const name of ["project/p1", "permission/p1", "project/p2", "permission/p2"]) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, `${name}.json`), '{"rules":[]}');
  }
  for (const name of [
    `snapshot/aa/${before.slice(2)}`,
    `snapshot/bb/${after.slice(2)}`,
    "snapshot/cc/other",
  ]) {
    mkdirSync(dirname(join(data, name)), { recursive: true });
    writeFileSync(join(data, name), deflateSync(name));
  }
  const both = (kind: Kind, of: (id: SessionId) => string): [string, string, string] => [
    kind,
    join(root, of(ids[kind])),
    join(root, of(ids.other)),
  ];
  const firstMessage = (id: SessionId) => `message/${id}/${readdirSync(join(root, "message", id)).sort()[0]}`;
  return {
    root,
    ids,
    victims: [
      both("session", (id) => `session/p1/${id}.json`),
      both("message", firstMessage),
      both("todo", (id) => `todo/${id}.json`),
      both("journal", (id) => `journal/${id}.ndjson`),
      both("lock", (id) => `lock/${id}.lock`),
      both("session_diff", (id) => `session_diff/${id}.json`),
      ["project", join(root, "project/p1.json"), join(root, "project/p2.json")],
      ["permission", join(root, "permission/p1.json"), join(root, "permission/p2.json")],
      ["snapshot", join(data, `snapshot/aa/${before.slice(2)}`), join(data, "snapshot/cc/other")],
    ],
  };
}

/**
 * Stored messages with a text and with a changed file, todos, a diff, and a text that is only in the journal.
 */
async function write(store: SessionStore, id: SessionId): Promise<void> {
  const first = await openWriter(store, id);
  const question = newMessageId();
  first.putMessage({ id: question, sessionId: id, role: "user", time: { created: 1 }, agent: "build" });
  first.putPart(question, textPart("filed"));
  first.seal(question);
  const edited = toolPart("edited");
  if (edited.state.status !== "completed") throw new Error("not completed");
  edited.state.changes = [{ path: "/a", operation: "update", before, after, additions: 1, deletions: 1 }];
  const answer = { parentId: question, time: { created: 1, completed: 2 } };
  const called = assistantInfo(id, { ...answer, finish: "tool-calls" });
  first.putMessage(called);
  first.putPart(called.id, edited);
  first.seal(called.id);
  first.saveTodos([{ content: "a todo", status: "pending", priority: "high" }]);
  await first.close();

  const second = await openWriter(store, id);
  const notice = assistantInfo(id, { ...answer, finish: "stop" });
  second.putMessage(notice);
  second.putPart(notice.id, textPart("in the journal"));
  await second.close();
  await store.files.write(["session_diff", id], []);
}

interface Shown {
  items: Item[];
  todos: boolean;
}

async function load(editor: Editor, id: SessionId): Promise<Shown> {
  const start = editor.updates(id).length;
  await editor.load(id);
  const updates = editor.updates(id).slice(start);
  const end = updates.findIndex(({ sessionUpdate }) => sessionUpdate === "available_commands_update");
  return {
    items: itemsOf(updates.slice(0, end)),
    todos: updates.some(({ sessionUpdate }) => sessionUpdate === "plan"),
  };
}

const textsOf = ({ items }: Shown) => items.map(({ kind, text }) => (kind === "text" ? text : "a call"));
const logOf = (home: StoryContext["home"]) => {
  const path = join(home.path, ".local/state/fairlead/fairlead.log");
  return existsSync(path) ? readFileSync(path, "utf8") : "";
};

/** A kill leaves a journal like this, so nothing is wrong with it. */
const looksTorn = new Set(["is empty", "was cut off in the middle"]);

/** One of each way to harm a file: its bytes, its words, its shape, its size, what it is. */
const representative = new Set([
  "was cut off in the middle",
  "is full of NULs",
  "has its fields in wrong types",
  "comes from a later version",
  "is a folder",
]);
const played = Object.entries(damages).filter(([name]) => isLong || representative.has(name));

const whole = ["filed", "a call", "in the journal"];

test.each(played)(
  "reports a stored file that %s by name, keeps it, and loads everything else",
  async (name, damage) => {
    await story({}, async (context) => {
      const { editor, model } = context;
      const { ids, victims } = await fill(context);
      for (const [, path, other] of victims) damage(path, other);
      const isKept = (kind: string) => {
        const path = victims.find(([name]) => name === kind)?.[1] ?? "";
        const names = readdirSync(dirname(path)).filter((name) =>
          join(dirname(path), name).startsWith(`${path}.corrupt-`),
        );
        return names.length > 0 && logOf(context.home).includes(JSON.stringify(path).slice(1, -1));
      };

      const { sessions } = await editor.list();
      const listed = sessions.map(({ sessionId }) => sessionId);
      for (const [kind, id] of Object.entries(ids)) expect(listed, kind).toContain(id);
      const titles = new Map(sessions.map(({ sessionId, title }) => [sessionId, title]));
      expect(titles.get(ids.session)).toBe("of session");

      for (const kind of ["none", "todo", "lock", "session_diff", "snapshot"] as const) {
        const shown = await load(editor, ids[kind]);
        expect([kind, textsOf(shown)]).toEqual([kind, whole]);
        expect([kind, shown.todos || isKept("todo")]).toEqual([kind, true]);
      }
      const message = textsOf(await load(editor, ids.message));
      expect(message.slice(-2)).toEqual(whole.slice(-2));
      expect(message.length === 3 || isKept("message"), "the message").toBe(true);
      const journal = textsOf(await load(editor, ids.journal));
      expect(journal.slice(0, 2)).toEqual(whole.slice(0, 2));
      expect(journal.length === 3 || isKept("journal") || looksTorn.has(name), "the journal").toBe(true);
      expect(textsOf(await load(editor, ids.session))).toEqual(whole);
      if (isKept("session")) {
        const notice = thoughtText(editor.updates(ids.session));
        expect(notice).toContain("The file of this session was damaged or missing. It was rebuilt");
      }

      for (const kind of ["none", "session", "message", "journal", "lock"] as const) {
        model.reply("It goes on.");
        expect((await editor.prompt(ids[kind], "Go on")).stopReason).toBe("end_turn");
      }
      const created = await editor.newSession();
      model.reply("It goes on.");
      await editor.prompt(created.sessionId, "A new one");
    });
  },
);

test.each(Object.entries(damages))(
  "a store whose version file %s still opens with all its data",
  async (_, damage) => {
    await using folder = await temporaryFolder();
    const root = join(folder.path, "storage");
    const store = await SessionStore.open({ root, log: silentLog });
    const info = sessionInfo();
    await store.create(info);
    writeFileSync(join(root, "other.json"), "1");
    damage(join(root, "migration.json"), join(root, "other.json"));
    const again = await SessionStore.open({ root, log: silentLog });
    expect(await again.list({ limit: 10 })).toEqual({ sessions: [info] });
    expect(JSON.parse(readFileSync(join(root, "migration.json"), "utf8"))).toMatchObject({ version: 1 });
  },
);

test("rejects a store of a later version with an explanation, and does not change it", async () => {
  await story({}, async (context) => {
    const { editor } = context;
    const { root, ids } = await fill(context);
    const later = JSON.stringify({ version: 2, migrations: ["create the layout", "a later one"] });
    writeFileSync(join(root, "migration.json"), later);
    const words = /were stored by a newer version of this program .*Update it, or set XDG_DATA_HOME/;
    for (const answer of [editor.list(), editor.load(ids.none), editor.newSession()]) {
      expect((await expectFailure(answer)).message).toMatch(words);
    }
    expect(readFileSync(join(root, "migration.json"), "utf8")).toBe(later);
    writeFileSync(join(root, "migration.json"), "1");
    expect(textsOf(await load(editor, ids.none))).toEqual(whole);
  });
});

/** Damages that leave a readable list of keys, or none. */
const stillKeys = new Set([
  "has its fields in wrong types",
  "is Latin-1",
  "comes from a later version",
  "has the content of another",
  "is a link to another",
  "is a link to nowhere",
]);

test("a damaged credentials file is reported and blocks no session", async () => {
  await story({}, async ({ editor, model, home }) => {
    const path = join(home.path, ".local/share/fairlead/credentials.json");
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(`${path}.other`, '{"test":{}}');
    for (const [name, damage] of Object.entries(damages)) {
      rmSync(path, { recursive: true, force: true });
      writeFileSync(path, '{"elsewhere":{"apiKey":"secret-key"}}', { mode: 0o600 });
      damage(path, `${path}.other`);
      const { sessionId } = await editor.newSession();
      model.reply("Fine.");
      expect([name, await editor.prompt(sessionId, "How are you?")]).toMatchObject([
        name,
        { stopReason: "end_turn" },
      ]);
      const isTold = thoughtText(editor.updates(sessionId)).includes(`${path} is not valid`);
      expect([name, isTold]).toEqual([name, !stillKeys.has(name)]);
    }
    expect(logOf(home)).not.toContain("secret-key");
  });
});
