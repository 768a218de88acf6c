import { readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { Editor } from "../../support/editor/editor.ts";
import { expectFailure } from "../../support/failure.ts";
import * as reply from "../../support/model/reply.ts";
import { type StoryContext, story } from "../../support/editor/story.ts";
import { lacksRenamesInUse, lacksResourceLimits } from "../../support/platform/platform.ts";
import { agentText, thoughtText, toolCalls } from "../../support/transcript.ts";

const data = (home: StoryContext["home"], ...names: string[]) =>
  join(home.path, ".local/share/fairlead", ...names);

async function finishes(editor: Editor, sessionId: string, text: string): Promise<void> {
  expect((await editor.prompt(sessionId, text)).stopReason).toBe("end_turn");
}

/** The message of the error, if there is one. */
const problemOf = (answer: Promise<unknown>): Promise<string | undefined> =>
  answer.then(() => undefined, String);

/** Replaces a folder by a file. Returns a function that reverts this. */
async function block(path: string): Promise<() => Promise<void>> {
  await rename(path, `${path}-away`);
  await writeFile(path, "in the way");
  return async () => {
    await rm(path);
    await rename(`${path}-away`, path);
  };
}

test.skipIf(lacksResourceLimits)(
  "a full disk fails the turn with a clear error, and sessions continue",
  async () => {
    const limited = [fileURLToPath(new URL("../../crash/programs/limited-agent.ts", import.meta.url)), "128"];
    await story({}, async ({ editor, model, home, repository }) => {
      const tight = new Editor({ home: home.path, cwd: repository.path, program: limited });
      await tight.initialize();
      const { sessionId } = await tight.newSession();
      model.reply("Small.");
      await finishes(tight, sessionId, "Say little");
      model.reply(reply.tinyDeltas(1500, "much ".repeat(100)));
      const failure = await expectFailure(tight.prompt(sessionId, "Say much"));
      expect(failure.code).toBe(-32603);
      expect(failure.message).toMatch(
        /^Sessions cannot be stored in .*: the file may not grow any further \(EFBIG\)\. Raise the file size limit/,
      );
      const busy = await tight.newSession();
      // The wire log checks that a call ends before its turn, also in a failed turn.
      model.reply(
        reply.call("bash", { command: "sleep 0.2" }),
        reply.tinyDeltas(1500, "much ".repeat(100)),
        reply.finish("tool_calls"),
      );
      await expectFailure(tight.prompt(busy.sessionId, "Say much while you wait"));
      expect(toolCalls(tight.updates(busy.sessionId)).map(({ status }) => status)).toEqual(["failed"]);
      const other = await tight.newSession();
      model.reply("Still here.");
      await finishes(tight, other.sessionId, "And here?");
      expect((await tight.list()).sessions.map((one) => one.sessionId).sort()).toEqual(
        [sessionId, busy.sessionId, other.sessionId].sort(),
      );
      await tight.close();
      tight.assertClean();

      await editor.load(sessionId);
      model.reply("There is room again.");
      await finishes(editor, sessionId, "Go on");
    });
  },
);

test.skipIf(lacksResourceLimits)("stores nothing of an output that does not fit on the disk", async () => {
  const limited = [fileURLToPath(new URL("../../crash/programs/limited-agent.ts", import.meta.url)), "512"];
  await story({ program: limited }, async ({ editor, model, home }) => {
    const { sessionId } = await editor.newSession();
    const command = "yes 0123456789 | head -c 2000000";
    model.reply(reply.call("bash", { command }), reply.finish("tool_calls")).reply("Much.");
    await finishes(editor, sessionId, "Print");
    const notice = model.requests.flatMap(({ toolResults }) => toolResults);
    expect(notice[0]).toMatch(
      /Only the last \d+ lines are shown; [\d.]+ MB before are missing here\. The whole output could not be saved: /,
    );
    expect(await readdir(data(home, "tool-output"))).toEqual([]);
  });
});

test("reports an impossible data folder with advice, and works once it can be created", async () => {
  await story({ homeFiles: { ".local/share/fairlead": "in the way" } }, async ({ editor, model, home }) => {
    const failure = await expectFailure(editor.newSession());
    expect(failure.code).toBe(-32603);
    expect(failure.message).toContain("there is a file where a folder should be");
    expect(failure.message).toContain("Move that file away and try again.");
    await rm(data(home));
    const { sessionId } = await editor.newSession();
    model.reply("Fine.");
    await finishes(editor, sessionId, "Better?");
  });
});

/** The file of a session in the folder `lock` is open as long as the session. */
const folders = ["session", "message", "journal", "tmp", ...(lacksRenamesInUse ? [] : ["lock"])];

test.each(folders)("a folder %s that cannot be written fails operations until it can", async (name) => {
  await story({}, async ({ editor, model, home }) => {
    model.otherwise(({ userText }) => `Answer to ${userText}`);
    const { sessionId } = await editor.newSession();
    await finishes(editor, sessionId, "first");
    const unblock = await block(data(home, "storage", name));
    const outcome = await problemOf(editor.prompt(sessionId, "second"));
    const created = await problemOf(
      editor.newSession().then((other) => editor.prompt(other.sessionId, "in another")),
    );
    const problems = [outcome, created].filter((problem) => problem !== undefined);
    expect(problems.length).toBeGreaterThan(0);
    for (const problem of problems)
      expect(problem).toMatch(/Sessions cannot be stored in .*Move that file away/);
    await unblock();
    await finishes(editor, sessionId, "third");
    await editor.closeSession(sessionId);
    const before = editor.updates(sessionId).length;
    await editor.load(sessionId);
    const shown = JSON.stringify(editor.updates(sessionId).slice(before));
    for (const text of ["first", "third"]) expect(shown).toContain(`Answer to ${text}`);
  });
});

test("a store that is deleted while in use ends its sessions, not the program", async () => {
  await story({}, async ({ editor, model, home }) => {
    model.otherwise(({ userText }) => `Answer to ${userText}`);
    const { sessionId } = await editor.newSession();
    await finishes(editor, sessionId, "first");
    await rm(data(home), { recursive: true });
    await finishes(editor, sessionId, "second");
    const other = await editor.newSession();
    await finishes(editor, other.sessionId, "third");
    await editor.restart();
    await editor.initialize();
    for (const id of [sessionId, other.sessionId]) await editor.load(id);
    await finishes(editor, sessionId, "fourth");
  });
});

test("does not change a file whose old content cannot be stored for undo", async () => {
  const options = { files: { "a.txt": "one\n" }, config: { permission: "allow" } };
  await story(options, async ({ editor, model, home, repository }) => {
    const { sessionId } = await editor.newSession();
    await writeFile(data(home, "snapshot"), "in the way");
    const path = join(repository.path, "a.txt");
    const write = (content: string) => reply.call("write", { filePath: path, content });
    const read = reply.call("read", { filePath: path });
    model.reply(read).reply(write("two\n")).reply("It failed.");
    await finishes(editor, sessionId, "Change a.txt");
    expect(await readFile(path, "utf8")).toBe("one\n");
    await rm(data(home, "snapshot"));
    model.reply(write("three\n")).reply("Done.");
    await finishes(editor, sessionId, "Try again");
    expect(await readFile(path, "utf8")).toBe("three\n");
    const statuses = toolCalls(editor.updates(sessionId)).map(({ name, status }) => [name, status]);
    expect(statuses).toEqual([
      ["read", "completed"],
      ["write", "failed"],
      ["write", "completed"],
    ]);
  });
});

test("a damaged message is set aside and reported when the session is loaded", async () => {
  await story({}, async ({ editor, model, home }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.say("First."));
    await editor.prompt(sessionId, "One");
    model.reply(reply.say("Second."));
    await editor.prompt(sessionId, "Two");
    await editor.closeSession(sessionId);
    const folder = join(home.path, ".local/share/fairlead/storage/message", sessionId);
    const [oldest = ""] = (await readdir(folder)).sort();
    await writeFile(join(folder, oldest), "\0\0\0");
    const before = editor.updates(sessionId).length;
    await editor.load(sessionId);
    const shown = editor.updates(sessionId).slice(before);
    expect(thoughtText(shown)).toContain(oldest);
    expect(agentText(shown)).toBe("First.Second.");
  });
});
