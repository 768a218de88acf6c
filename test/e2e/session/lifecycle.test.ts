import { readdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { messageOf } from "../../../src/base/errors.ts";
import { plain, zedLike, type ClientKind } from "../../support/editor/clients.ts";
import { Editor } from "../../support/editor/editor.ts";
import { expectFailure } from "../../support/failure.ts";
import { waitForFile } from "../../support/file-watch.ts";
import { toObject, toText } from "../../support/json.ts";
import { endlessCommand, lacksSignals, lacksWatchdog } from "../../support/platform/platform.ts";
import * as reply from "../../support/model/reply.ts";
import { collectUnrequestedMessages } from "../../support/editor/silence.ts";
import { isLong } from "../../support/run-length.ts";
import { storiesOfOneAgent, type StoryContext } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { agentText, shown, thoughtText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

/** Milliseconds of streamed text that may be lost when the process is killed. */
const lossLimitMs = 200;
const askBash = { permission: { bash: "ask" } };

const kinds = (updates: readonly SessionUpdate[]) => updates.map(({ sessionUpdate }) => sessionUpdate);
const hasText = (text: string) => (update: SessionUpdate) =>
  update.sessionUpdate === "agent_message_chunk" &&
  update.content.type === "text" &&
  update.content.text.includes(text);
const isRunning = (update: SessionUpdate) =>
  update.sessionUpdate === "tool_call_update" && update.status === "in_progress";

/** Returns only the updates of a load. */
async function replayOf(editor: Editor, sessionId: string): Promise<SessionUpdate[]> {
  const before = editor.updates(sessionId).length;
  await editor.load(sessionId);
  return editor.updates(sessionId).slice(before);
}

async function reopened(editor: Editor): Promise<void> {
  await editor.restart();
  await editor.initialize();
}

/** Plays a turn with all kinds of content that an editor shows. */
async function playRichTurn({ editor, model }: StoryContext, sessionId: string): Promise<void> {
  const todos = (status: string) => [{ id: "1", content: "Look", status, priority: "high" }];
  model
    .reply(
      reply.think("First ", "I look."),
      reply.say("I read ", "it."),
      reply.together(
        reply.callScript("read", { filePath: "a.txt" }),
        reply.callScript("grep", { pattern: "one" }),
      ),
    )
    .reply(reply.call("todowrite", { todos: todos("in_progress") }))
    .reply(
      reply.say("Now I change."),
      reply.call("edit", { filePath: "a.txt", oldString: "one", newString: "two" }),
      reply.call("write", { filePath: "new/b.txt", content: "fresh\n" }),
    )
    .reply(reply.call("edit", { filePath: "a.txt", oldString: "not there", newString: "x" }))
    .reply(reply.call("bash", { command: "printf 'out ``` put\\n'; exit 3" }))
    .reply(reply.call("todowrite", { todos: todos("completed") }))
    .reply(reply.think("Good."), reply.say("All ", "done."));
  await editor.prompt(sessionId, "Change a.txt");
}

describe("a loaded session", () => {
  test.each<[string, () => ClientKind]>([
    ["a plain editor", plain],
    ["an editor with terminals", zedLike],
  ])("shows %s the same updates as the live session", async (_name, client) => {
    await story({ files: { "a.txt": "one\n" }, client: client() }, async (context) => {
      const { editor } = context;
      const { sessionId } = await editor.newSession();
      await playRichTurn(context, sessionId);
      const live = shown(editor.updates(sessionId));
      const calls = toolCalls(editor.updates(sessionId));
      expect(calls.map(({ name, status }) => [name, status])).toEqual([
        ["read", "completed"],
        ["grep", "completed"],
        ["edit", "completed"],
        ["write", "completed"],
        ["edit", "failed"],
        ["bash", "failed"],
      ]);
      const [lastPlan] = editor.updates(sessionId, "plan").slice(-1);
      const prompt = { kind: "user_message_chunk", text: "Change a.txt" };
      const expected = [expect.objectContaining(prompt), ...live.map(settled)];

      const again = await replayOf(editor, sessionId);
      expect(shown(again).map(settled)).toEqual(expected);
      expect(again.filter(({ sessionUpdate }) => sessionUpdate === "plan")).toEqual([lastPlan]);

      await reopened(editor);
      const later = await replayOf(editor, sessionId);
      expect(later).toEqual(again);
    });
  });

  test("shows the output that was streamed into an editor's terminal", async () => {
    await story({ client: zedLike() }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "echo one; echo two" })).reply("Done.");
      await editor.prompt(sessionId, "Say it");
      expect(terminalOutput(editor.updates(sessionId))).toBe("one\r\ntwo\r\n");
      expect(terminalOutput(await replayOf(editor, sessionId)).trimEnd()).toBe("one\r\ntwo");
    });
  });

  test("shows an embedded text as a link, by its file's name", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Read.");
      const uri = "file:///far/away/a.ts";
      await editor.prompt(sessionId, [{ type: "resource", resource: { uri, text: "unsaved" } }]);
      const [message] = await replayOf(editor, sessionId);
      expect(message).toMatchObject({ content: { type: "resource_link", uri, name: "a.ts" } });
    });
  });

  test("processes requests that were sent together in their order", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("In build.").reply("In plan.");
      const [, , changed] = await Promise.all([
        editor.prompt(sessionId, "One"),
        editor.setMode(sessionId, "plan"),
        editor.setConfigOption(sessionId, "mode", "build"),
        editor.setMode(sessionId, "plan"),
      ]);
      expect(changed.configOptions[0]?.currentValue).toBe("build");
      await editor.prompt(sessionId, "Two");
      const isPlan = model.requests.map(({ messages }) =>
        JSON.stringify(messages).includes("Plan mode is on"),
      );
      expect(model.requests.map(({ userText }) => userText.slice(0, 3))).toEqual(["One", "Two"]);
      expect(isPlan).toEqual([false, true]);
    });
  });

  test("is complete after it was closed, and can be continued", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.").reply("Again.");
      await editor.prompt(sessionId, "Hi");
      await editor.closeSession(sessionId);
      expect(await expectFailure(editor.prompt(sessionId, "Hi"))).toMatchObject({ code: -32002 });
      expect(agentText(await replayOf(editor, sessionId))).toBe("Hello.");
      await editor.prompt(sessionId, "Once more");
      expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual([
        "system",
        "user",
        "assistant",
        "user",
      ]);
    });
  });

  test("is replayed once for each of two simultaneous loads", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      await reopened(editor);
      await Promise.all([editor.load(sessionId), editor.load(sessionId)]);
      const history = kinds(editor.updates(sessionId)).filter((kind) => kind.endsWith("_chunk"));
      expect(history).toEqual([
        "user_message_chunk",
        "agent_message_chunk",
        "user_message_chunk",
        "agent_message_chunk",
      ]);
      expect(await collectUnrequestedMessages(editor)).toEqual([]);
    });
  });

  test("accepts a prompt sent after its load or resume, once that is answered", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.otherwise("Hello.");
      for (const open of [() => editor.load(sessionId), () => editor.resume(sessionId)]) {
        await editor.closeSession(sessionId);
        const order: string[] = [];
        const opened = open().then(() => order.push("opened"));
        const turns = ["One", "Two"].map((text) =>
          editor.prompt(sessionId, text).then(({ stopReason }) => order.push(`${text} ${stopReason}`)),
        );
        await Promise.all([opened, ...turns]);
        expect(order).toEqual(["opened", "One end_turn", "Two end_turn"]);
      }
    });
  });

  test("does not start a prompt that is cancelled before its load is answered", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.closeSession(sessionId);
      const load = editor.load(sessionId);
      const turn = editor.prompt(sessionId, "Hi");
      await editor.cancel(sessionId);
      expect((await turn).stopReason).toBe("cancelled");
      await load;
      expect(model.requests).toEqual([]);
    });
  });

  test("survives close and load sent together, in either order", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.").reply("Still here.");
      await editor.prompt(sessionId, "Hi");
      await Promise.all([editor.closeSession(sessionId), editor.load(sessionId)]);
      await editor.prompt(sessionId, "Are you there?");
      expect(agentText(editor.updates(sessionId))).toBe("Hello.Hello.Still here.");
      await Promise.all([editor.load(sessionId), editor.closeSession(sessionId)]);
      expect(await expectFailure(editor.prompt(sessionId, "And now?"))).toMatchObject({ code: -32002 });
    });
  });

  test("sends no update before its resume and pending choices are answered", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      const choices = [
        () => editor.setMode(sessionId, "plan"),
        () => editor.setConfigOption(sessionId, "approval", "auto"),
        () => editor.request("session/set_title", { sessionId, title: "A name" }),
      ];
      for (const choose of choices) {
        await editor.closeSession(sessionId);
        const before = editor.wire.entries.length;
        await Promise.all([editor.resume(sessionId), choose()]);
        await editor.list();
        const messages = editor.wire.entries.slice(before).map(({ message }) => message?.kind);
        const first = messages.slice(0, messages.indexOf("notification"));
        expect(first.filter((kind) => kind === "response")).toHaveLength(2);
      }
    });
  });

  test("accepts a choice after a load with other folders, and is free after a close", async () => {
    await story({}, async ({ editor, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.list();
      const load = editor.load(sessionId, { additionalDirectories: [repository.path] });
      await Promise.all([load, editor.setMode(sessionId, "plan")]);
      expect((await editor.load(sessionId)).modes?.currentModeId).toBe("plan");
      for (let round = 0; round < 3; round++) {
        const { sessionId: other } = await editor.newSession();
        await editor.list();
        const choice = editor.request("session/set_model", { sessionId: other, modelId: "test/scripted" });
        await Promise.all([choice, editor.closeSession(other)]);
        await editor.load(other);
      }
    });
  });

  test("opens if an additional folder is gone, and rejects one that is a file", async () => {
    await story({ files: { "a.txt": "" } }, async ({ editor, model, repository }) => {
      const gone = join(repository.path, "gone");
      const { sessionId } = await editor.newSession({ additionalDirectories: [gone] });
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      await editor.load(sessionId, { additionalDirectories: [gone] });
      const notice = `The folder ${gone} does not exist; the session continues without it.\n\n`;
      expect(thoughtText(editor.updates(sessionId))).toBe(notice + notice);
      const { sessions } = await editor.list();
      expect(sessions[0]).not.toHaveProperty("additionalDirectories");
      const file = { additionalDirectories: [join(repository.path, "a.txt")] };
      expect(await expectFailure(editor.load(sessionId, file))).toMatchObject({ code: -32602 });
    });
  });

  test("does not silently lose a message that arrives while it opens with other folders", async () => {
    await using elsewhere = await temporaryFolder();
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.otherwise("Hello.");
      for (const additionalDirectories of [[elsewhere.path], [], [elsewhere.path]]) {
        const load = editor.load(sessionId, { additionalDirectories });
        await editor.list();
        const turn = editor.prompt(sessionId, "Hi");
        const end = await turn.then(({ stopReason }) => stopReason, messageOf);
        expect(end).toMatch(/^end_turn$|Send this again/);
        await load;
      }
    });
  });

  test("works in the folder it is loaded with, also when its configuration changes", async () => {
    await using elsewhere = await temporaryFolder();
    await story({ permission: "allow_once" }, async ({ editor, model, repository, home }) => {
      const { sessionId } = await editor.newSession();
      const folder = async () => {
        const command = `"${process.execPath}" -p "process.cwd()"`;
        model.reply(reply.call("bash", { command })).reply("Done.");
        await editor.prompt(sessionId, "Where are we?");
        return model.requests.at(-1)?.toolResults[0]?.trim();
      };
      expect(await folder()).toBe(repository.path);
      await editor.load(sessionId, { cwd: elsewhere.path });
      expect(await folder()).toBe(elsewhere.path);
      await home.write({
        ".config/fairlead/AGENTS.md": "Be kind.\n",
        ".config/fairlead/agent/new.md": "New.\n",
      });
      expect(await folder()).toBe(elsewhere.path);
      const { sessions } = await editor.list({ cwd: elsewhere.path });
      expect(sessions.map((session) => session.sessionId)).toEqual([sessionId]);
      await editor.closeSession(sessionId);
      await editor.load(sessionId);
      expect(await folder()).toBe(repository.path);
    });
  });

  test("shows the running turn, which continues", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const [first, second] = [reply.gate(), reply.gate()];
      model
        .reply(reply.say("Working "), first, reply.say("on it."), reply.call("bash", { command: "echo hi" }))
        .reply(reply.say("Nearly "), second, reply.say("done."));
      const turn = editor.prompt(sessionId, "Work");
      await editor.waitFor(sessionId, hasText("Working"));
      expect(agentText(await replayOf(editor, sessionId))).toBe("Working ");
      first.release();
      await editor.waitFor(sessionId, hasText("Nearly"));
      const again = await replayOf(editor, sessionId);
      expect(agentText(again)).toBe("Working on it.Nearly ");
      expect(toolCalls(again)).toMatchObject([{ title: "echo hi", status: "completed" }]);
      const before = editor.updates(sessionId).length;
      second.release();
      expect(await turn).toMatchObject({ stopReason: "end_turn" });
      expect(agentText(editor.updates(sessionId).slice(before))).toBe("done.");
    });
  });

  test("keeps its mode and its model", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      await reopened(editor);
      const loaded = await editor.load(sessionId);
      expect(loaded.modes?.currentModeId).toBe("plan");
      await editor.closeSession(sessionId);
      expect(await editor.resume(sessionId)).toEqual(loaded);
    });
  });

  const turns = isLong ? 300 : 40;
  test(`of ${turns} turns is replayed in order`, { timeout: isLong ? 240_000 : 60_000 }, async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.otherwise(({ userText }) => `Answer to ${userText}.`);
      for (let turn = 1; turn <= turns; turn++) await editor.prompt(sessionId, `question ${turn}`);
      await reopened(editor);
      const updates = await replayOf(editor, sessionId);
      const texts = updates.flatMap((update) =>
        update.sessionUpdate.endsWith("_message_chunk") ? [toObject(toObject(update).content).text] : [],
      );
      const expected = Array.from({ length: turns }, (_, at) => [
        `question ${at + 1}`,
        `Answer to question ${at + 1}.`,
      ]);
      expect(texts).toEqual(expected.flat());
    });
  });
});

describe("a resumed session", () => {
  test("from an earlier process replays nothing and has its whole history", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.").reply("I know.");
      await editor.prompt(sessionId, "My name is Ada");
      await reopened(editor);
      await editor.resume(sessionId);
      await editor.prompt(sessionId, "What is my name?");
      expect(agentText(editor.updates(sessionId))).toBe("I know.");
      expect(JSON.stringify(model.requests[1]?.messages)).toContain("My name is Ada");
    });
  });
});

describe("the list of sessions", () => {
  test("is paged over 120 sessions, filtered by folder, each exactly once", { timeout: 60_000 }, async () => {
    await using elsewhere = await temporaryFolder();
    await story({}, async ({ editor, repository }) => {
      const created = await createMany(editor, 120, [repository.path, elsewhere.path]);
      const pages = await allPages(editor);
      expect(pages.map((page) => page.length)).toEqual([100, 20]);
      expect(pages.flat().sort()).toEqual(created.map(({ sessionId }) => sessionId).sort());
      const here = created.filter(({ cwd }) => cwd === elsewhere.path).map(({ sessionId }) => sessionId);
      expect((await allPages(editor, elsewhere.path)).flat().sort()).toEqual(here.sort());
    });
  });

  test("finds sessions of a folder by any path to it, and returns that path", async () => {
    await using elsewhere = await temporaryFolder();
    await story({}, async ({ editor, repository }) => {
      const link = join(elsewhere.path, "link");
      await symlink(repository.path, link, "junction");
      const { sessionId } = await editor.newSession({ cwd: link });
      for (const cwd of [link, repository.path, `${repository.path}/`]) {
        const { sessions } = await editor.list({ cwd });
        expect(sessions.map((session) => [session.sessionId, session.cwd])).toEqual([[sessionId, cwd]]);
      }
    });
  });

  test("begins with the most recently used session, with its title", async () => {
    await story({}, async ({ editor, model, repository }) => {
      const { sessionId: first } = await editor.newSession();
      const { sessionId: second } = await editor.newSession();
      model.reply("Hello.").title("Greeting");
      await editor.prompt(first, "Hi");
      await editor.waitFor(
        first,
        (update) => update.sessionUpdate === "session_info_update" && update.title === "Greeting",
      );
      const updatedAt = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
      expect(await editor.list()).toEqual({
        sessions: [
          { sessionId: first, cwd: repository.path, title: "Greeting", updatedAt },
          { sessionId: second, cwd: repository.path, title: null, updatedAt },
        ],
      });
    });
  });

  test.each(["nonsense", "-1", "e30=", "__proto__", "x".repeat(100_000)])(
    "refuses the cursor %.20s",
    async (cursor) => {
      await story({}, async ({ editor }) => {
        expect(await expectFailure(editor.list({ cursor }))).toMatchObject({ code: -32602 });
        expect(await expectFailure(editor.list({ cwd: "relative" }))).toMatchObject({ code: -32602 });
      });
    },
  );
});

describe("deleting", () => {
  test("a busy session cancels its turn and leaves no processes", async () => {
    await story({}, async ({ editor, model, home }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.say("Working"), reply.gate());
      const turn = editor.prompt(sessionId, "Work");
      await editor.waitFor(sessionId, hasText("Working"));
      expect(await editor.delete(sessionId)).toEqual({});
      expect(await turn).toMatchObject({ stopReason: "cancelled" });
      expect(await expectFailure(editor.prompt(sessionId, "Hi"))).toMatchObject({
        code: -32002,
        message: `Session not found: ${sessionId}`,
      });
      await reopened(editor);
      expect(await editor.list()).toEqual({ sessions: [] });
      expect(await filesNaming(home.path, sessionId)).toEqual([]);
    });
  });
});

describe("two processes", () => {
  test("do not share a session: the second gets the owner's pid, and the session later", async () => {
    await story({}, async ({ editor, model, home, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      const other = new Editor({ home: home.path, cwd: repository.path });
      try {
        await other.initialize();
        const refused = await expectFailure(other.load(sessionId));
        expect(refused.message).toContain(`pid ${editor.pid}`);
        expect((await expectFailure(other.resume(sessionId))).message).toBe(refused.message);
        expect((await other.newSession()).sessionId).not.toBe(sessionId);
        await editor.closeSession(sessionId);
        await other.load(sessionId);
        expect(agentText(other.updates(sessionId))).toBe("Hello.");
        expect(await expectFailure(editor.load(sessionId))).toMatchObject({
          message: expect.stringContaining(`pid ${other.pid}`),
        });
      } finally {
        await other.close();
      }
      other.assertClean();
      await editor.load(sessionId);
    });
  });
});

describe("after a kill", () => {
  test.skipIf(lacksWatchdog)("none of its commands and modules remains, whatever they ignore", async () => {
    const loop = `
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
export default { description: "Loops.", args: {}, execute() {
  spawn("sleep", ["600"]);
  writeFileSync("loop", "");
  for (;;);
} };
`;
    const stubborn = "trap '' TERM HUP; while :; do sleep 1; done";
    const command = `(${stubborn}) & setsid sh -c "${stubborn}" & echo >bash; ${stubborn}`;
    const homeFiles = { ".config/fairlead/tools/loop.js": loop };
    await story({ homeFiles, config: { permission: "allow" } }, async ({ editor, model, repository }) => {
      const turns = [];
      for (const [tool, args] of Object.entries({ bash: { command }, loop: {} })) {
        const { sessionId } = await editor.newSession();
        model.reply(reply.call(tool, args));
        turns.push(editor.prompt(sessionId, "Go"));
        await waitForFile(join(repository.path, tool));
      }
      await editor.kill();
      for (const turn of turns) await expect(turn).rejects.toThrow();
    });
  });

  test("restores shown text after a crash during streaming and notifies the user", async () => {
    await story({}, async (context) => {
      const { editor, model } = context;
      const { sessionId } = await editor.newSession();
      model.reply(reply.think("Hm."), reply.say("Half an ", "answer"), reply.gate());
      const turn = editor.prompt(sessionId, "Tell me");
      await editor.waitFor(sessionId, hasText("answer"));
      await delay(lossLimitMs);
      await editor.kill();
      await expect(turn).rejects.toThrow();
      await reopened(editor);
      const updates = await replayOf(editor, sessionId);
      expect(agentText(updates)).toBe("Half an answer");
      expect(thoughtText(updates)).toMatch(/^Hm\..*interrupted/s);
      model.reply("The rest.");
      expect(await editor.prompt(sessionId, "Go on")).toMatchObject({ stopReason: "end_turn" });
      expect(JSON.stringify(model.requests[1]?.messages)).toContain("Half an answer");
    });
  });

  test("a tool call that was running has failed", async () => {
    // Without a watchdog it ends when its folder is removed.
    const command = "echo begun; while [ -e a.txt ]; do sleep 0.1; done";
    await story({ files: { "a.txt": "one\n" } }, async (context) => {
      const { editor, model } = context;
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("read", { filePath: "a.txt" }), reply.call("bash", { command }));
      const turn = editor.prompt(sessionId, "Wait");
      await editor.waitFor(
        sessionId,
        (update) => isRunning(update) && JSON.stringify(editor.updates(sessionId)).includes("begun"),
      );
      await editor.kill();
      await expect(turn).rejects.toThrow();
      await reopened(editor);
      const updates = await replayOf(editor, sessionId);
      expect(toolCalls(updates)).toMatchObject([
        { kind: "read", status: "completed" },
        { kind: "execute", status: "failed", title: command },
      ]);
      expect(thoughtText(updates)).toMatch(/interrupted.*echo begun; while/);
      model.reply("I try again.");
      await editor.prompt(sessionId, "Go on");
      expect(model.requests[1]?.messages.filter(({ role }) => role === "tool")).toHaveLength(2);
    });
  });

  test("a call with an open question has failed and changes nothing", async () => {
    await story({ config: askBash, permission: "never" }, async (context) => {
      const { editor, model, repository } = context;
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "touch made" }));
      const turn = editor.prompt(sessionId, "Make it");
      await editor.permissionRequest(1);
      await delay(lossLimitMs);
      await editor.kill();
      await expect(turn).rejects.toThrow();
      await reopened(editor);
      const updates = await replayOf(editor, sessionId);
      expect(toolCalls(updates)).toMatchObject([{ title: "touch made", status: "failed" }]);
      expect(thoughtText(updates)).toContain("interrupted");
      await expect(readFile(join(repository.path, "made"))).rejects.toThrow("ENOENT");
      editor.permission = "allow_once";
      model.reply(reply.call("bash", { command: "touch made" })).reply("Made.");
      await editor.prompt(sessionId, "Make it now");
      expect(await readFile(join(repository.path, "made"), "utf8")).toBe("");
    });
  });

  test("a resumed session reports the interruption once, with its next turn", async () => {
    await story({}, async (context) => {
      const { editor, model } = context;
      const { sessionId } = await editor.newSession();
      model.reply(reply.say("Half"), reply.gate());
      const turn = editor.prompt(sessionId, "Tell me");
      await editor.waitFor(sessionId, hasText("Half"));
      await editor.kill();
      await expect(turn).rejects.toThrow();
      await reopened(editor);
      await editor.resume(sessionId);
      expect((await collectUnrequestedMessages(editor)).map(({ line }) => line).join()).not.toContain(
        "_chunk",
      );
      model.reply("The rest.").reply("More.");
      await editor.prompt(sessionId, "Go on");
      await editor.prompt(sessionId, "And on");
      expect(thoughtText(editor.updates(sessionId)).match(/interrupted/g)).toHaveLength(1);
    });
  });
});

describe("the end of the program", () => {
  const deaf = "trap '' TERM INT HUP; echo begun; while :; do sleep 1; done";

  /** Ends the program while a call runs. The wire log checks that each call ends before its turn is answered. */
  async function endStory(
    end: "stdin" | NodeJS.Signals,
    answers: readonly reply.Step[],
    client: ClientKind = plain(),
  ): Promise<ReturnType<typeof toolCalls>> {
    let calls: ReturnType<typeof toolCalls> = [];
    await story({ client, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      for (const answer of answers) model.reply(answer);
      const turn = editor.prompt(sessionId, "Wait").then(
        ({ stopReason }) => stopReason,
        (error: unknown) => messageOf(error),
      );
      await editor.waitFor(sessionId, () => /begun(\\|\/)/.test(JSON.stringify(editor.updates(sessionId))));
      const began = performance.now();
      const exit = end === "stdin" ? editor.close() : editor.kill(end);
      expect(await exit).toEqual({ code: 0, signal: null });
      expect(performance.now() - began).toBeLessThan(3_000);
      const reason = end === "stdin" ? "because its input ended" : `was ended by ${end}`;
      expect(await turn).toMatch(new RegExp(`^cancelled$|^The program (ended )?${reason}\\.$`));
      calls = toolCalls(editor.updates(sessionId));
    });
    return calls;
  }

  test.each([
    ["a command runs", `echo begun; ${endlessCommand}`],
    [
      "a command runs with children in the background",
      `${endlessCommand} & ${endlessCommand} & echo begun; wait`,
    ],
    ["a command runs that ignores its end", deaf],
  ])("by its input, while %s, is fast, ends the call and leaves no process", async (_name, command) => {
    const calls = await endStory("stdin", [reply.call("bash", { command })]);
    expect(calls.map(({ status }) => status)).toEqual(["failed"]);
  });

  test.skipIf(lacksSignals).each([
    ["", plain()],
    [" in an editor with terminals", zedLike()],
  ])("by a signal ends a call whose command ignores its own end%s", async (_name, client) => {
    const calls = await endStory("SIGTERM", [reply.call("bash", { command: deaf })], client);
    expect(calls.map(({ status }) => status)).toEqual(["failed"]);
  });

  test.skipIf(lacksSignals)("by a signal ends a task and its agent's commands", async () => {
    const task = reply.call("task", { description: "Wait", prompt: "Wait.", subagent_type: "general" });
    const calls = await endStory("SIGTERM", [task, reply.call("bash", { command: deaf })], zedLike());
    expect(calls.map(({ status }) => status)).toEqual(["failed", "failed"]);
  });
});

/** The output in a terminal of the editor. */
function terminalOutput(updates: readonly SessionUpdate[]): string {
  return updates.map(({ _meta }) => toText(toObject(toObject(_meta).terminal_output).data) ?? "").join("");
}

/** A call in its final state; another test covers its terminal. */
function settled(item: unknown): unknown {
  const { _meta, ...rest } = toObject(item);
  return rest;
}

async function createMany(editor: Editor, count: number, folders: string[]) {
  const created: { sessionId: string; cwd: string }[] = [];
  for (let at = 0; at < count; at++) {
    const cwd = folders[at % folders.length] ?? "";
    const { sessionId } = await editor.newSession({ cwd });
    created.push({ sessionId, cwd });
  }
  return created;
}

/** The ids on each page. */
async function allPages(editor: Editor, cwd?: string): Promise<string[][]> {
  const pages: string[][] = [];
  let cursor: string | null | undefined;
  do {
    const page = await editor.list({ ...(cwd && { cwd }), ...(cursor && { cursor }) });
    pages.push(page.sessions.map(({ sessionId }) => sessionId));
    cursor = page.nextCursor;
  } while (cursor);
  return pages;
}

async function filesNaming(folder: string, name: string): Promise<string[]> {
  const all = await readdir(folder, { recursive: true });
  return all.filter((path) => path.includes(name));
}
