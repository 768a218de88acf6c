import { access, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type DraftEditor, draftStoriesOfOneAgent, draftText } from "../../support/editor/draft-editor.ts";
import { Editor } from "../../support/editor/editor.ts";
import { type StoryContext, storiesOfOneAgent } from "../../support/editor/story.ts";
import { expectFailure } from "../../support/failure.ts";
import { toList, toObject } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { replayTexts, toolCalls } from "../../support/transcript.ts";
import type { ModelServer } from "../../support/model/model-server.ts";
import { lacksShellLinks } from "../../support/platform/platform.ts";

const story = storiesOfOneAgent();
const draftStory = draftStoriesOfOneAgent();

const config = { permission: { edit: "allow" } };
const write = (filePath: string, content: string) => reply.call("write", { filePath, content });

/** Plays two turns, each of which writes a file. */
async function playTurns({ editor, model }: StoryContext): Promise<string> {
  const { sessionId } = await editor.newSession();
  model.reply(write("one.txt", "1\n")).reply("Wrote one.");
  await editor.prompt(sessionId, "Write one");
  model.reply(write("two.txt", "2\n")).reply("Wrote two.");
  await editor.prompt(sessionId, "Write two");
  return sessionId;
}

async function getPoints(editor: Pick<Editor, "request"> | DraftEditor, sessionId: string) {
  const answer = toObject(await editor.request("_session/rewind_points", { sessionId }));
  return toList(answer.points).map(toObject);
}

const rewind = (editor: Editor, params: Record<string, string | boolean>) =>
  editor.request("_session/rewind", params);

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

async function sentTexts(model: ModelServer, act: () => Promise<unknown>): Promise<string> {
  model.reply("I see.");
  await act();
  return JSON.stringify(model.requests.at(-1)?.messages);
}

describe("rewind points", () => {
  test("are the turns, oldest first, with the ids that the client has seen", async () => {
    await story({ config }, async (context) => {
      const { editor } = context;
      const sessionId = await playTurns(context);
      const agentIds = editor.updates(sessionId, "agent_message_chunk").map(({ messageId }) => messageId);
      const points = await getPoints(editor, sessionId);
      expect(points).toMatchObject([
        { text: "Write one", index: 1, resumeAtMessageId: null },
        { text: "Write two", index: 2, resumeAtMessageId: agentIds[0] },
      ]);
    });
  });
});

describe("a rewind in version 1", () => {
  test("as a dry run reports changes without making them", async () => {
    await story({ config }, async (context) => {
      const { editor, repository, model } = context;
      const sessionId = await playTurns(context);
      await writeFile(join(repository.path, "two.txt"), "mine\n");
      const [first] = await getPoints(editor, sessionId);
      const messageId = String(first?.messageId);
      expect(await rewind(editor, { sessionId, messageId, mode: "both", dryRun: true })).toEqual({
        files: {
          canRewind: true,
          filesChanged: [join(repository.path, "one.txt")],
          insertions: 0,
          deletions: 1,
          skipped: [{ path: join(repository.path, "two.txt"), reason: "it has changed since" }],
        },
        conversation: { rewound: false, messagesDropped: 6 },
      });
      expect(await exists(join(repository.path, "one.txt"))).toBe(true);
      const sent = await sentTexts(model, () => editor.prompt(sessionId, "And?"));
      expect(sent).toContain("Wrote two.");
    });
  });

  test("as a dry run handles folders and files that replaced each other", async () => {
    const bash = { permission: { edit: "allow", bash: "allow" } } as const;
    const files = { a: "one\n", "lib/b": "two\n" };
    await story({ files, config: bash }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const command = "rm a && mkdir -p a/deep && echo x > a/deep/x && rm -r lib && echo y > lib";
      const link = lacksShellLinks ? "" : " && ln -s a c";
      model.reply(reply.call("bash", { command: command + link })).reply("Ran.");
      await editor.prompt(sessionId, "Run it");
      const [first] = await getPoints(editor, sessionId);
      const params = { sessionId, messageId: String(first?.messageId), mode: "files" };
      const names = ["a", "a/deep/x", ...(lacksShellLinks ? [] : ["c"]), "lib", "lib/b"];
      const paths = names.map((name) => join(repository.path, name));
      const expected = { files: { filesChanged: paths, skipped: [] } };
      expect(await rewind(editor, { ...params, dryRun: true })).toMatchObject(expected);
      expect(await rewind(editor, params)).toMatchObject(expected);
      expect(await readFile(join(repository.path, "lib/b"), "utf8")).toBe("two\n");
    });
  });

  test("as a dry run of one part reports only that part, and changes nothing", async () => {
    await story({ config }, async (context) => {
      const { editor, repository } = context;
      const sessionId = await playTurns(context);
      const [, second] = await getPoints(editor, sessionId);
      const messageId = String(second?.messageId);
      const dryRun = (mode: string) => rewind(editor, { sessionId, messageId, mode, dryRun: true });
      expect(await dryRun("files")).toEqual({
        files: {
          canRewind: true,
          filesChanged: [join(repository.path, "two.txt")],
          insertions: 0,
          deletions: 1,
          skipped: [],
        },
      });
      expect(await dryRun("conversation")).toEqual({
        conversation: { rewound: false, messagesDropped: 3 },
      });
      expect(await exists(join(repository.path, "two.txt"))).toBe(true);
      expect(await replayTexts(editor, sessionId)).toContain("Wrote two.");
    });
  });

  test("of both keeps the user's edits, and another client sees the same", async () => {
    await story({ config }, async (context) => {
      const { editor, repository, model, home } = context;
      const sessionId = await playTurns(context);
      await writeFile(join(repository.path, "two.txt"), "mine\n");
      const [first] = await getPoints(editor, sessionId);
      const answer = await rewind(editor, { sessionId, messageId: String(first?.messageId), mode: "both" });
      expect(answer).toMatchObject({
        files: { filesChanged: [join(repository.path, "one.txt")], skipped: [{}] },
        conversation: { rewound: true, messagesDropped: 6 },
      });
      expect(await exists(join(repository.path, "one.txt"))).toBe(false);
      expect(await readFile(join(repository.path, "two.txt"), "utf8")).toBe("mine\n");
      expect(await replayTexts(editor, sessionId)).toEqual([]);
      const sent = await sentTexts(model, () => editor.prompt(sessionId, "Afresh"));
      expect(sent).not.toContain("Write one");
      await editor.closeSession(sessionId);
      const second = new Editor({ home: home.path, cwd: repository.path });
      await second.initialize();
      expect(await replayTexts(second, sessionId)).toEqual(["Afresh", "I see."]);
      expect(await getPoints(second, sessionId)).toMatchObject([{ text: "Afresh", index: 1 }]);
      await second.close();
      second.assertClean();
    });
  });

  test("of the files keeps the conversation", async () => {
    await story({ config }, async (context) => {
      const { editor, repository, model } = context;
      const sessionId = await playTurns(context);
      const [, second] = await getPoints(editor, sessionId);
      const answer = await rewind(editor, { sessionId, messageId: String(second?.messageId) });
      expect(Object.keys(toObject(answer))).toEqual(["files"]);
      expect(await exists(join(repository.path, "one.txt"))).toBe(true);
      expect(await exists(join(repository.path, "two.txt"))).toBe(false);
      expect(await sentTexts(model, () => editor.prompt(sessionId, "And?"))).toContain("Wrote two.");
    });
  });

  test("of the conversation keeps the files, and /redo restores it", async () => {
    await story({ config }, async (context) => {
      const { editor, repository } = context;
      const sessionId = await playTurns(context);
      const [, second] = await getPoints(editor, sessionId);
      const messageId = String(second?.messageId);
      expect(await rewind(editor, { sessionId, messageId, mode: "conversation" })).toEqual({
        conversation: { rewound: true, messagesDropped: 3 },
      });
      expect(await readFile(join(repository.path, "two.txt"), "utf8")).toBe("2\n");
      expect(await replayTexts(editor, sessionId)).toEqual(["Write one", "Wrote one."]);
      await editor.prompt(sessionId, "/redo");
      expect(await readFile(join(repository.path, "two.txt"), "utf8")).toBe("2\n");
      expect(await replayTexts(editor, sessionId)).toEqual(
        expect.arrayContaining(["Write two", "Wrote two."]),
      );
    });
  });

  test("is refused during a turn, for unknown messages, answers and modes", async () => {
    await story({ config }, async (context) => {
      const { editor, model } = context;
      const sessionId = await playTurns(context);
      const [first] = await getPoints(editor, sessionId);
      const messageId = String(first?.messageId);
      const answerId = String(editor.updates(sessionId, "agent_message_chunk").at(0)?.messageId);
      expect(await expectFailure(rewind(editor, { sessionId, messageId: "nothing" }))).toMatchObject({
        code: -32_002,
        message: expect.stringMatching(/no message "nothing"/),
      });
      expect(await expectFailure(rewind(editor, { sessionId, messageId: answerId }))).toMatchObject({
        code: -32_602,
        message: expect.stringMatching(/not a prompt of the user/),
      });
      expect(await expectFailure(rewind(editor, { sessionId, messageId, mode: "all" }))).toMatchObject({
        code: -32_602,
        message: expect.stringMatching(/mode must be one of/),
      });
      model.reply(reply.say("Working"), reply.gate());
      const turn = editor.prompt(sessionId, "Work");
      await editor.waitFor(
        sessionId,
        ({ sessionUpdate, ...update }) =>
          sessionUpdate === "agent_message_chunk" && JSON.stringify(update).includes("Working"),
      );
      expect(await expectFailure(rewind(editor, { sessionId, messageId, mode: "both" }))).toMatchObject({
        code: -32_600,
        message: expect.stringMatching(/turn .* is running/),
      });
      await editor.cancel(sessionId);
      await turn;
    });
  });
});

describe("a rewind in version 2", () => {
  const start = async (context: { editor: DraftEditor; model: ModelServer; cwd: string }) => {
    const { editor, model, cwd } = context;
    const sessionId = String((await editor.request("session/new", { cwd })).sessionId);
    model.reply(write("one.txt", "1\n")).reply("Wrote one.");
    const first = await editor.turn(sessionId, "Write one");
    model.reply("Said two.");
    const second = await editor.turn(sessionId, "Say two");
    return { sessionId, first: String(first.messageId), second: String(second.messageId) };
  };
  const truncations = (editor: DraftEditor, sessionId: string) =>
    editor.updates(sessionId).filter(({ sessionUpdate }) => sessionUpdate === "history_truncated");

  test("drops the messages after one, announces it and keeps files", async () => {
    await draftStory({ config }, async ({ editor, model, repository }) => {
      const { sessionId, first } = await start({ editor, model, cwd: repository.path });
      expect(await editor.request("session/rewind", { sessionId, toMessageId: first })).toEqual({
        lastMessageId: first,
      });
      expect(truncations(editor, sessionId)).toEqual([
        { sessionUpdate: "history_truncated", lastMessageId: first },
      ]);
      expect(await exists(join(repository.path, "one.txt"))).toBe(true);
      const sent = await sentTexts(model, () => editor.turn(sessionId, "And?"));
      expect(sent).toContain("Write one");
      expect(sent).not.toContain("Wrote one.");
      const before = editor.updates(sessionId).length;
      await editor.request("session/resume", {
        sessionId,
        cwd: repository.path,
        replayFrom: { type: "start" },
      });
      const replayed = editor.updates(sessionId).slice(before);
      expect(draftText(replayed, "user_message_chunk")).toBe("Write oneAnd?");
      expect(draftText(replayed, "agent_message_chunk")).toBe("I see.");
    });
  });

  test("of files and of the conversation announces only removed messages", async () => {
    await draftStory({ config }, async ({ editor, model, repository }) => {
      const { sessionId, first } = await start({ editor, model, cwd: repository.path });
      const path = join(repository.path, "one.txt");
      const send = (more: Record<string, string | boolean>) =>
        editor.request("_session/rewind", { sessionId, messageId: first, ...more });
      expect(await send({ mode: "both", dryRun: true })).toMatchObject({
        files: { filesChanged: [path] },
        conversation: { rewound: false },
      });
      expect(await exists(path)).toBe(true);
      expect(Object.keys(await send({ mode: "files" }))).toEqual(["files"]);
      expect(await exists(path)).toBe(false);
      expect(truncations(editor, sessionId)).toEqual([]);
      expect(await send({ mode: "conversation" })).toMatchObject({ conversation: { rewound: true } });
      expect(truncations(editor, sessionId)).toEqual([
        { sessionUpdate: "history_truncated", lastMessageId: null },
      ]);
      expect(await sentTexts(model, () => editor.turn(sessionId, "Afresh"))).not.toContain("Write one");
    });
  });

  test("is shown in both versions of the protocol, in both directions", async () => {
    await draftStory({ config }, async ({ editor, model, repository, home }) => {
      const { sessionId, first } = await start({ editor, model, cwd: repository.path });
      await editor.request("session/rewind", { sessionId, toMessageId: first });
      await sentTexts(model, () => editor.turn(sessionId, "And?"));
      await editor.request("session/close", { sessionId });
      const other = new Editor({ home, cwd: repository.path });
      await other.initialize();
      expect(await replayTexts(other, sessionId)).toEqual(["Write one", "And?", "I see."]);
      const points = await getPoints(other, sessionId);
      expect(points).toMatchObject([{ text: "Write one" }, { text: "And?" }]);
      await rewind(other, { sessionId, messageId: String(points[1]?.messageId), mode: "both" });
      await other.close();
      other.assertClean();
      const before = editor.updates(sessionId).length;
      await editor.request("session/resume", {
        sessionId,
        cwd: repository.path,
        replayFrom: { type: "start" },
      });
      expect(draftText(editor.updates(sessionId).slice(before), "user_message_chunk")).toBe("Write one");
      expect(await getPoints(editor, sessionId)).toMatchObject([{ text: "Write one", index: 1 }]);
    });
  });

  test("keeps an answer whose text is named", async () => {
    await draftStory({ config }, async ({ editor, model, repository }) => {
      const { sessionId } = await start({ editor, model, cwd: repository.path });
      const answer = editor.updates(sessionId).find(({ sessionUpdate }) => sessionUpdate === "agent_message");
      const toMessageId = String(answer?.messageId);
      await editor.request("session/rewind", { sessionId, toMessageId });
      const sent = await sentTexts(model, () => editor.turn(sessionId, "And?"));
      expect(sent).toContain("Wrote one.");
      expect(sent).not.toContain("Say two");
    });
  });

  test("an edited prompt replaces its message and runs again", async () => {
    await draftStory({ config }, async ({ editor, model, repository }) => {
      const { sessionId, first, second } = await start({ editor, model, cwd: repository.path });
      const content = [{ type: "text", text: "Say three" }];
      model.reply("Said three.");
      const from = editor.updates(sessionId).length;
      const { messageId } = await editor.request("session/edit_prompt", {
        sessionId,
        messageId: second,
        content,
      });
      expect(messageId).not.toBe(second);
      await editor.waitFor(sessionId, ({ state }) => state === "idle", from);
      const sent = JSON.stringify(model.requests.at(-1)?.messages);
      expect(sent).toContain("Say three");
      expect(sent).not.toContain("Say two");
      const answer = editor.updates(sessionId).find(({ sessionUpdate }) => sessionUpdate === "agent_message");
      expect(truncations(editor, sessionId)).toEqual([
        { sessionUpdate: "history_truncated", lastMessageId: answer?.messageId },
      ]);
      const kinds = editor.kinds(sessionId, from);
      expect(kinds.indexOf("history_truncated")).toBeLessThan(kinds.indexOf("user_message"));
      model.reply("Said four.");
      const again = editor.updates(sessionId).length;
      await editor.request("session/edit_prompt", { sessionId, messageId: first, content });
      await editor.waitFor(sessionId, ({ state }) => state === "idle", again);
      expect(truncations(editor, sessionId).at(-1)).toMatchObject({ lastMessageId: null });
      expect(await exists(join(repository.path, "one.txt"))).toBe(true);
    });
  });

  test("reports unknown messages and messages that are not prompts", async () => {
    await draftStory({ config }, async ({ editor, model, repository }) => {
      const { sessionId } = await start({ editor, model, cwd: repository.path });
      const content = [{ type: "text", text: "Say three" }];
      const answer = editor.updates(sessionId).find(({ sessionUpdate }) => sessionUpdate === "agent_message");
      expect(
        await expectFailure(editor.request("session/rewind", { sessionId, toMessageId: "nothing" })),
      ).toMatchObject({ code: -32_002, message: expect.stringMatching(/no message/) });
      const messageId = String(answer?.messageId);
      const edited = editor.request("session/edit_prompt", { sessionId, messageId, content });
      expect(await expectFailure(edited)).toMatchObject({
        code: -32_602,
        data: { reason: "not_a_user_message" },
      });
      expect(truncations(editor, sessionId)).toEqual([]);
    });
  });
});

describe("a replay from a message", () => {
  test("in version 1 omits the message that the client has, and all before it", async () => {
    await story({ config }, async (context) => {
      const { editor } = context;
      const sessionId = await playTurns(context);
      const [, second] = await getPoints(editor, sessionId);
      const [answer] = editor.updates(sessionId, "agent_message_chunk").map(({ messageId }) => messageId);
      await editor.closeSession(sessionId);
      expect(await replayTexts(editor, sessionId)).toEqual([
        "Write one",
        "Wrote one.",
        "Write two",
        "Wrote two.",
      ]);

      const before = editor.updates(sessionId).length;
      const replayAfter = String(answer);
      const loaded = await editor.load(sessionId, { _meta: { replayAfter } });
      expect(loaded._meta).toEqual({ replayedAfter: replayAfter });
      const calls = toolCalls(editor.updates(sessionId).slice(before));
      expect(calls).toMatchObject([{ title: expect.stringContaining("two.txt"), status: "completed" }]);
      expect(await replayTexts(editor, sessionId, { replayAfter })).toEqual(["Write two", "Wrote two."]);
      const messageId = String(second?.messageId);
      expect(await replayTexts(editor, sessionId, { replayAfter: messageId })).toEqual(["Wrote two."]);

      const load = (id: unknown) => expectFailure(editor.load(sessionId, { _meta: { replayAfter: id } }));
      expect(await load("msg_none")).toMatchObject({ code: -32002, data: { reason: "unknown_message_id" } });
      expect(await load(5)).toMatchObject({ code: -32602 });
      await editor.load(sessionId);
    });
  });

  test("in version 2 begins with the named message", async () => {
    await draftStory({ config }, async ({ editor, model, repository }) => {
      const cwd = repository.path;
      const sessionId = String((await editor.request("session/new", { cwd })).sessionId);
      model.reply(write("one.txt", "1\n")).reply("Wrote one.").reply("Said two.");
      await editor.turn(sessionId, "Write one");
      const { messageId } = await editor.turn(sessionId, "Say two");
      const answers = editor
        .updates(sessionId)
        .filter(({ sessionUpdate }) => sessionUpdate === "agent_message");
      const replayFrom = async (id: unknown) => {
        const before = editor.updates(sessionId).length;
        const from = { type: "_message", messageId: id };
        await editor.request("session/resume", { sessionId, cwd, replayFrom: from });
        const replayed = editor.updates(sessionId).slice(before);
        const texts = [draftText(replayed, "user_message_chunk"), draftText(replayed, "agent_message_chunk")];
        return [...texts, replayed.some(({ sessionUpdate }) => sessionUpdate === "tool_call_update")];
      };
      expect(await replayFrom(messageId)).toEqual(["Say two", "Said two.", false]);
      expect(await replayFrom(answers[0]?.messageId)).toEqual(["Say two", "Wrote one.Said two.", true]);
      expect(await replayFrom(answers.at(-1)?.messageId)).toEqual(["", "Said two.", false]);
      const unknown = { code: -32002, data: { reason: "unknown_message_id" } };
      expect(await expectFailure(replayFrom("msg_none"))).toMatchObject(unknown);
    });
  });
});
