import { access, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { deferred, sleep } from "../../../src/base/async.ts";
import { withFs, type ClientKind } from "../../support/editor/clients.ts";
import type { Editor } from "../../support/editor/editor.ts";
import { parseJson } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { type StoryContext, storiesOfOneAgent } from "../../support/editor/story.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { agentText, thoughtText, toolCalls } from "../../support/transcript.ts";
import { Bell } from "../../support/waiting.ts";

const story = storiesOfOneAgent();

const allowAll = { config: { permission: { edit: "allow", bash: "allow" } } } as const;

/** Returns the agent's text in response to one prompt. */
async function say(editor: Editor, sessionId: string, text: string): Promise<string> {
  const before = editor.updates(sessionId).length;
  await editor.prompt(sessionId, text);
  return agentText(editor.updates(sessionId).slice(before));
}

/** Has the model write these files in one turn. */
async function writeTurn(
  { editor, model }: Pick<StoryContext, "editor" | "model">,
  sessionId: string,
  prompt: string,
  files: Record<string, string>,
): Promise<void> {
  const calls = Object.entries(files).map(([filePath, content]) =>
    reply.call("write", { filePath, content }),
  );
  model.reply(...calls).reply(`Did: ${prompt}`);
  await editor.prompt(sessionId, prompt);
}

const storedFile = async ({ home }: StoryContext, ...key: string[]) =>
  parseJson(await readFile(join(home.path, ".local/share/fairlead/storage", ...key), "utf8"));

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

const requestTexts = (context: StoryContext) => JSON.stringify(context.model.requests.at(-1)?.messages);

test("changes that a call made after its cancel can be undone", async () => {
  const started = new Bell();
  let isBegun = false;
  const release = deferred<void>();
  const client: ClientKind = {
    ...withFs(),
    writeFile: async (path, content) => {
      isBegun = true;
      started.ring();
      await release.promise;
      await writeFile(path, content);
      return {};
    },
  };
  await story(
    { client, files: { "a.txt": "one\n" }, ...allowAll },
    async ({ editor, model, home, repository }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply(reply.call("edit", { filePath: "a.txt", oldString: "one", newString: "two" }));
      const turn = editor.prompt(sessionId, "Change it");
      await started.until(() => isBegun || undefined, "the write to the editor");
      await editor.cancel(sessionId);
      expect((await turn).stopReason).toBe("cancelled");
      release.resolve();
      const messages = join(home.path, ".local/share/fairlead/storage/message", sessionId);
      const amended = async () => {
        const files = await readdir(messages);
        const texts = await Promise.all(
          files.map((name) => readFile(join(messages, name), "utf8").catch(() => "")),
        );
        return texts.some((text) => text.includes("It could not be stopped before it changed"));
      };
      const deadline = Date.now() + 5_000;
      while (!(await amended()) && Date.now() < deadline) await sleep(10);
      expect(await readFile(join(repository.path, "a.txt"), "utf8")).toBe("two\n");
      expect(await say(editor, sessionId, "/undo")).toContain("- a.txt: restored");
      expect(await readFile(join(repository.path, "a.txt"), "utf8")).toBe("one\n");
    },
  );
});

describe("/undo", () => {
  test("reverts the last turn's files and messages, and reports that", async () => {
    await story({ files: { "a.txt": "one\ntwo\n" }, ...allowAll }, async (context) => {
      const { editor, model, repository } = context;
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply(reply.call("edit", { filePath: "a.txt", oldString: "two", newString: "2" }))
        .reply(reply.call("write", { filePath: "new/b.txt", content: "b\n" }))
        .reply("Changed.");
      await editor.prompt(sessionId, "Write digits");
      expect(await say(editor, sessionId, "/undo")).toBe(
        [
          'Undone: the turn "Write digits". The model no longer sees it.',
          "- a.txt: restored\n- new/b.txt: removed, because the agent had created it",
          "`/redo` restores all of this, until you send the next message.",
        ].join("\n\n"),
      );
      expect(await readFile(join(repository.path, "a.txt"), "utf8")).toBe("one\ntwo\n");
      expect(await exists(join(repository.path, "new/b.txt"))).toBe(false);
      model.reply("Hello.");
      await editor.prompt(sessionId, "Who are you?");
      expect(requestTexts(context)).not.toContain("digits");
      expect(await say(editor, sessionId, "/redo")).toContain("There is nothing to redo.");
    });
  });

  test("skips files that the user has changed since, gives advice, and undoes the rest", async () => {
    await story({ files: {}, ...allowAll }, async (context) => {
      const { editor, repository } = context;
      const { sessionId } = await editor.newSession();
      await writeTurn(context, sessionId, "Make", { a: "a\n", b: "b\n", c: "c\n" });
      await repository.write({ b: "mine\n" });
      await rm(join(repository.path, "c"));
      const answer = await say(editor, sessionId, "/undo");
      expect(answer).toContain("- b: not changed, because it has changed since\n");
      expect(answer).toContain("- a: removed, because the agent had created it\n");
      expect(answer).toContain("- c: removed, because the agent had created it\n");
      expect(answer).toContain("restore what the agent left and send `/redo`, then `/undo` to try again");
      expect(await readFile(join(repository.path, "b"), "utf8")).toBe("mine\n");
      expect(await exists(join(repository.path, "a"))).toBe(false);
    });
  });

  test("restores what commands changed, but not what the user has changed since", async () => {
    await story({ files: { a: "one\n", b: "two\n", c: "three\n" }, ...allowAll }, async (context) => {
      const { editor, model, repository } = context;
      const { sessionId } = await editor.newSession();
      await repository.write({ b: "edited before\n" });
      const command =
        "echo made > new; sed -i.bak s/one/1/ a; rm a.bak b; echo more >> c; git -c user.name=a -c user.email=a@example.com commit -qam all";
      model.reply(reply.call("bash", { command })).reply("Ran.");
      await editor.prompt(sessionId, "Run it");
      await repository.write({ c: "mine\n" });
      const answer = await say(editor, sessionId, "/undo");
      expect(answer).toContain(
        [
          "- c: not changed, because it has changed since",
          "- a: restored",
          "- b: brought back",
          "- new: removed, because the agent had created it",
        ].join("\n"),
      );
      expect(answer).toMatch(
        /Not everything that its commands did is undone\. Check these yourself:\n\n- `echo made > new.*`: git's HEAD moved from \w+ \(\w{8}\) to \w+ \(\w{8}\), and stays there/,
      );
      const text = (name: string) => readFile(join(repository.path, name), "utf8");
      expect([await text("a"), await text("b"), await text("c")]).toEqual([
        "one\n",
        "edited before\n",
        "mine\n",
      ]);
      expect(await exists(join(repository.path, "new"))).toBe(false);
      expect(await say(editor, sessionId, "/redo")).toContain("- new: made again");
      expect([await text("a"), await exists(join(repository.path, "b"))]).toEqual(["1\n", false]);
    });
  });

  test("reports unknown changes of a command that ran when the program was killed", async () => {
    await story({ files: { a: "one\n", b: "two\n" }, ...allowAll }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      // Without a watchdog, as on Windows, it goes on after the kill.
      const command = "echo more >> a; until test -e done; do sleep 0.2; done";
      model.reply(reply.call("bash", { command: "echo more >> b" })).reply(reply.call("bash", { command }));
      editor.prompt(sessionId, "Run it").catch(() => "the kill answers it");
      const text = (name: string) => readFile(join(repository.path, name), "utf8");
      await changed(async () => (await text("a")) === "one\nmore\n");
      await editor.kill();
      await editor.restart();
      await editor.initialize();
      await editor.load(sessionId);
      const answer = await say(editor, sessionId, "/undo");
      expect(answer).toContain("- b: restored");
      expect(answer).toContain(
        `- \`${command}\`: the program ended while it ran, so its changes are unknown`,
      );
      expect([await text("a"), await text("b")]).toEqual(["one\nmore\n", "two\n"]);
      await repository.write({ done: "" });
    });
  });

  test("shows the changes of a command on its card, after its output", async () => {
    await story({ files: { a: "one\n" }, ...allowAll }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("bash", { command: "sed -i.bak s/one/1/ a && rm a.bak && echo done" }))
        .reply("Ran.");
      await editor.prompt(sessionId, "Run it");
      const [card] = toolCalls(editor.updates(sessionId));
      expect(card?.content?.map(({ type }) => type)).toEqual(["content", "diff"]);
      expect(card?.content?.[1]).toMatchObject({ oldText: "one\n", newText: "1\n" });
    });
  });

  test("reports that no file was changed", async () => {
    await story({ files: {}, ...allowAll }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "ls" })).reply("Ran.");
      await editor.prompt(sessionId, "Run it");
      const answer = await say(editor, sessionId, "/undo");
      expect(answer).toContain("No file was changed in it.");
      expect(answer).not.toContain("commands");
    });
  });

  test("waits for the running turn, and finds nothing in a new session", async () => {
    await story({ files: {}, ...allowAll }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      expect(await say(editor, sessionId, "/undo")).toBe("There is no turn to undo.");
      const gate = reply.gate();
      model.reply(reply.call("write", { filePath: "a", content: "a" })).reply(gate, reply.say("Done."));
      const turn = editor.prompt(sessionId, "Make a");
      await gate.reached();
      const undo = editor.prompt(sessionId, "/undo");
      expect(await exists(join(repository.path, "a"))).toBe(true);
      gate.release();
      await Promise.all([turn, undo]);
      expect(await exists(join(repository.path, "a"))).toBe(false);
    });
  });

  test("undoes several turns, by number and by name, in a folder without git", async () => {
    await using folder = await temporaryFolder();
    await story({ files: {}, ...allowAll }, async (context) => {
      const { editor } = context;
      const { sessionId } = await editor.newSession({ cwd: folder.path });
      const text = () => readFile(join(folder.path, "a"), "utf8");
      for (const n of [1, 2, 3, 4]) await writeTurn(context, sessionId, `Step ${n}`, { a: `${n}\n` });
      expect(await say(editor, sessionId, "/undo 2")).toContain("Undone: the last 2 turns.");
      expect(await text()).toBe("2\n");
      const list = await say(editor, sessionId, "/checkpoints");
      const lines = list.split("\n").filter((line) => /^\d/.test(line));
      expect(lines.map((line) => line.replace(/`\w+` · [\d-]+ [\d:]+/, "…"))).toEqual([
        "1. … · Step 2 · 1 file, +1 -1",
        "2. … · Step 1 · 1 file, +1 -0",
      ]);
      expect(list).toContain("Send `/redo` to restore");
      const name = /^2\. `(\w+)`/m.exec(list)?.[1] ?? "";
      expect(await say(editor, sessionId, `/undo ${name}`)).toContain("Undone: the last 2 turns.");
      expect(await exists(join(folder.path, "a"))).toBe(false);
      expect(await say(editor, sessionId, "/redo")).toContain("There is more to redo: send `/redo` again.");
      expect(await text()).toBe("2\n");
      await say(editor, sessionId, "/redo");
      expect(await text()).toBe("4\n");
      expect(await say(editor, sessionId, "/undo 9")).toContain(
        'Checkpoint "9" not found; there are 4 turns to undo',
      );
      expect(await say(editor, sessionId, "/undo nothing!")).toContain("Write a number of turns or a name");
    });
  });

  test("survives a restart: undone messages stay hidden, and /redo still works", async () => {
    await story({ files: {}, ...allowAll }, async (context) => {
      const { editor, model, repository } = context;
      const { sessionId } = await editor.newSession();
      await writeTurn(context, sessionId, "First words", { a: "1" });
      await writeTurn(context, sessionId, "Second words", { a: "2" });
      await say(editor, sessionId, "/undo");
      await editor.restart();
      await editor.initialize();
      await editor.load(sessionId);
      const shown = agentText(editor.updates(sessionId));
      expect(shown).toContain("Did: First words");
      expect(shown).not.toContain("Did: Second words");
      expect(shown).toContain('Undone: the turn "Second words".');
      expect(await say(editor, sessionId, "/redo")).toContain("- a: changed again");
      expect(await readFile(join(repository.path, "a"), "utf8")).toBe("2");
      model.reply("Yes.");
      await editor.prompt(sessionId, "Go on");
      expect(requestTexts(context)).toContain("Did: Second words");
    });
  });

  test("removes a compaction if it undoes turns before it", async () => {
    await story({ files: {}, ...allowAll }, async (context) => {
      const { editor, model } = context;
      const { sessionId } = await editor.newSession();
      await writeTurn(context, sessionId, "First words", { a: "1" });
      await writeTurn(context, sessionId, "Second words", { a: "2" });
      model.reply("What was done: much.");
      await editor.prompt(sessionId, "/compact");
      expect(await say(editor, sessionId, "/undo")).toContain('Undone: the turn "Second words".');
      model.reply("Yes.");
      await editor.prompt(sessionId, "Go on");
      const sent = requestTexts(context);
      expect(sent).toContain("Did: First words");
      expect(sent).not.toMatch(/Second words|What was done/);
    });
  });

  test("undoes steering messages together with their turn", async () => {
    await story({ files: {}, ...allowAll }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      model.reply(gate, reply.call("write", { filePath: "a", content: "a" })).reply("Both done.");
      const turn = editor.prompt(sessionId, "Make a");
      await gate.reached();
      const prompt = [{ type: "text", text: "And be quick" }];
      expect(await editor.request("_session/steering", { sessionId, prompt })).toMatchObject({
        outcome: "injected",
      });
      gate.release();
      await turn;
      expect(await say(editor, sessionId, "/undo")).toContain('Undone: the turn "Make a".');
      expect(await say(editor, sessionId, "/checkpoints")).not.toContain("And be quick");
    });
  });

  test("keeps the session's diff and its summary up to date", async () => {
    await story({ files: { "a.txt": "one\n" }, ...allowAll }, async (context) => {
      const { editor, model, repository } = context;
      const { sessionId } = await editor.newSession();
      const diff = () => storedFile(context, "session_diff", `${sessionId}.json`);
      model
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply(reply.call("write", { filePath: "a.txt", content: "one\ntwo\n" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Add a line");
      await writeTurn(context, sessionId, "Add another", { "a.txt": "one\ntwo\nthree\n", b: "b\n" });
      expect(await diff()).toMatchObject({
        files: [
          { path: join(repository.path, "a.txt"), additions: 2, deletions: 0 },
          { path: join(repository.path, "b"), additions: 1, deletions: 0, before: null },
        ],
        additions: 3,
        deletions: 0,
      });
      await say(editor, sessionId, "/undo");
      expect(await diff()).toMatchObject({
        files: [{ path: join(repository.path, "a.txt"), additions: 1, deletions: 0 }],
        additions: 1,
      });
      await say(editor, sessionId, "/undo");
      expect(await diff()).toMatchObject({ files: [], additions: 0, deletions: 0 });
      await say(editor, sessionId, "/redo");
      expect(await diff()).toMatchObject({ additions: 1 });
    });
  });

  test("is completed after a kill in the middle", async () => {
    const names = Array.from({ length: 60 }, (_, index) => `file-${index}`);
    const contents = (text: string) => Object.fromEntries(names.map((name) => [name, text]));
    await story({ files: {}, ...allowAll }, async (context) => {
      const { editor, repository } = context;
      const { sessionId } = await editor.newSession();
      await writeTurn(context, sessionId, "Make", contents("old"));
      await writeTurn(context, sessionId, "Change", contents("new"));
      const texts = () => Promise.all(names.map((name) => readFile(join(repository.path, name), "utf8")));
      const undo = editor.prompt(sessionId, "/undo");
      undo.catch(() => "the kill answers it");
      await changed(async () => (await texts()).includes("old"));
      await editor.kill();
      await editor.restart();
      await editor.initialize();
      await editor.load(sessionId);
      expect(await texts()).toEqual(names.map(() => "old"));
      const shown = agentText(editor.updates(sessionId));
      expect(shown).not.toContain("Did: Change");
      const notice = shown + thoughtText(editor.updates(sessionId));
      expect(notice).toMatch(/Undone: the turn "Change"|before your last command was answered/);
      await say(editor, sessionId, "/redo");
      expect(await texts()).toEqual(names.map(() => "new"));
    });
  });
});

/** Repeats the request until the condition is met. */
async function changed(isSo: () => Promise<boolean>): Promise<void> {
  const bell = new Bell();
  let seen = false;
  const check = async (): Promise<void> => {
    seen = await isSo();
    bell.ring();
    if (!seen) setImmediate(() => void check());
  };
  void check();
  await bell.until(() => seen || undefined, "a file to change");
}
