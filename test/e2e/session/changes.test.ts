import { execFileSync } from "node:child_process";
import { access, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Editor } from "../../support/editor/editor.ts";
import * as reply from "../../support/model/reply.ts";
import { type StoryContext, storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";
import { lacksFileModes } from "../../support/platform/platform.ts";

const story = storiesOfOneAgent();

const allowAll = { config: { permission: { edit: "allow", bash: "allow" } } } as const;

/** Returns the agent's text in response to one prompt. */
async function say(editor: Editor, sessionId: string, text: string): Promise<string> {
  const before = editor.updates(sessionId).length;
  await editor.prompt(sessionId, text);
  return agentText(editor.updates(sessionId).slice(before));
}

const numbered = (count: number, changed: Readonly<Record<number, string>> = {}) =>
  Array.from({ length: count }, (_, index) => `${changed[index + 1] ?? `line ${index + 1}`}\n`).join("");

/** Lets the model change lines 3 and 30 of a.txt and create b.txt with a command. */
async function playTurn({ editor, model }: Pick<StoryContext, "editor" | "model">): Promise<string> {
  const { sessionId } = await editor.newSession();
  model
    .reply(reply.call("read", { filePath: "a.txt" }))
    .reply(reply.call("edit", { filePath: "a.txt", oldString: "line 3\n", newString: "three\n" }))
    .reply(reply.call("edit", { filePath: "a.txt", oldString: "line 30\n", newString: "thirty\n" }))
    .reply(reply.call("bash", { command: "printf 'made\\n' > b.txt" }))
    .reply("Changed.");
  await editor.prompt(sessionId, "Write words");
  return sessionId;
}

const files = { "a.txt": numbered(40) };
/** The name that git gives to the tree of all files, with modes and links. */
function treeHash(folder: string): string {
  const env = { ...process.env, GIT_INDEX_FILE: join(folder, ".git", "index-of-test") };
  const git = (...args: string[]) => execFileSync("git", args, { cwd: folder, env, encoding: "utf8" });
  git("add", "--all", "--force");
  return git("write-tree").trim();
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

describe("/changes", () => {
  test("lists the last turn's edits and command changes by number, with diffs on a card", async () => {
    await story({ files, ...allowAll }, async (context) => {
      const { editor, repository } = context;
      const sessionId = await playTurn(context);
      expect(await say(editor, sessionId, "/changes")).toBe(
        [
          '**Changes of the turn "Write words"**: 2 files, +3 -2',
          "- `1` a.txt, line 3: +1 -1\n- `2` a.txt, line 30: +1 -1\n- `3` b.txt: created, +1",
          "`/drop 1` undoes one change, `/drop 1 3` several, `/drop FILE` those of a file, `/drop all` all of them.",
        ].join("\n\n"),
      );
      const card = toolCalls(editor.updates(sessionId)).at(-1);
      expect(card).toMatchObject({
        title: 'Changes of the turn "Write words"',
        status: "completed",
        content: [
          {
            type: "diff",
            path: join(repository.path, "a.txt"),
            oldText: numbered(40),
            newText: numbered(40, { 3: "three", 30: "thirty" }),
          },
          { type: "diff", path: join(repository.path, "b.txt"), oldText: null, newText: "made\n" },
        ],
      });
    });
  });

  test("marks files that were edited since, and shows changes without those edits", async () => {
    await story({ files, ...allowAll }, async (context) => {
      const { editor, repository } = context;
      const sessionId = await playTurn(context);
      const mine = numbered(40, { 3: "three", 20: "mine", 30: "thirty and mine" });
      await repository.write({ "a.txt": mine });
      const list = await say(editor, sessionId, "/changes");
      expect(list).toContain(
        "- `1` a.txt, line 3: +1 -1\n- `2` a.txt, line 30: +1 -1; edited since, so `/drop` leaves it\n",
      );
      expect(list).toContain("Edited since, by you or another program: a.txt.");
      expect(list).not.toContain("line 20");
      expect(toolCalls(editor.updates(sessionId)).at(-1)?.content?.[0]).toMatchObject({
        oldText: numbered(40, { 20: "mine" }),
        newText: mine,
      });
    });
  });

  test("is limited to a file or folder with the same numbers, and names changed files", async () => {
    await story({ files, ...allowAll }, async (context) => {
      const { editor, repository } = context;
      const sessionId = await playTurn(context);
      const list = await say(editor, sessionId, "/changes b.txt");
      expect(list).toContain("1 file, +1 -0");
      expect(list).toContain("- `3` b.txt: created, +1");
      expect(list).not.toContain("a.txt");
      expect(toolCalls(editor.updates(sessionId)).at(-1)?.content).toHaveLength(1);
      expect(await say(editor, sessionId, "/drop 3")).toContain("- `3` b.txt: created, +1");
      expect(await exists(join(repository.path, "b.txt"))).toBe(false);
      expect(await say(editor, sessionId, "/changes src")).toBe(
        'The agent changed nothing in "src". Changed files: a.txt.',
      );
    });
  });

  test("shows the whole session with all, otherwise the last turn that changed files", async () => {
    await story({ files, ...allowAll }, async (context) => {
      const { editor, model, repository } = context;
      const { sessionId } = await editor.newSession();
      expect(await say(editor, sessionId, "/changes")).toBe("No turn has changed files yet.");
      model.reply(reply.call("write", { filePath: "one.txt", content: "1\n" })).reply("Wrote one.");
      await editor.prompt(sessionId, "Write one");
      model.reply(reply.call("write", { filePath: "two.txt", content: "2\n" })).reply("Wrote two.");
      await editor.prompt(sessionId, "Write two");
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hello");
      expect(await say(editor, sessionId, "/changes")).not.toContain("one.txt");
      expect(await say(editor, sessionId, "/changes all")).toContain(
        "**Changes of the session**: 2 files, +2 -0\n\n- `1` one.txt: created, +1\n- `2` two.txt: created, +1",
      );
      await say(editor, sessionId, "/drop all");
      expect(await exists(join(repository.path, "one.txt"))).toBe(false);
      expect(await exists(join(repository.path, "two.txt"))).toBe(false);
      expect(await say(editor, sessionId, "/changes all")).toBe(
        "Nothing is left of the changes of the session.",
      );
    });
  });

  test("shows an older turn by its number or name, and drops it without later changes", async () => {
    await story({ files, ...allowAll }, async (context) => {
      const { editor, model, repository } = context;
      const sessionId = await playTurn(context);
      const edit = { filePath: "a.txt", oldString: "line 20\n", newString: "twenty\n" };
      model.reply(reply.call("edit", edit)).reply("Changed more.");
      await editor.prompt(sessionId, "Write more");
      const list = await say(editor, sessionId, "/changes 2");
      expect(list).toContain(
        '**Changes of the turn "Write words"**: 2 files, +3 -2\n\n- `1` a.txt, line 3: +1 -1',
      );
      expect(list).toContain("Edited since, by you, a later turn or another program: a.txt.");
      const name = /`(\w{8})`[^\n]*Write words/.exec(await say(editor, sessionId, "/checkpoints"))?.[1];
      expect(await say(editor, sessionId, `/changes ${name} b.txt`)).toContain("- `3` b.txt: created, +1");
      expect(await say(editor, sessionId, "/drop all")).toContain("- `3` b.txt: created, +1");
      expect(await readFile(join(repository.path, "a.txt"), "utf8")).toBe(numbered(40, { 20: "twenty" }));
      expect(await exists(join(repository.path, "b.txt"))).toBe(false);
      expect(await say(editor, sessionId, "/changes 3")).toBe(
        "There is no turn 3. `/checkpoints` numbers the turns; `/changes ./3` is a file.",
      );
    });
  });

  test.skipIf(lacksFileModes)("describes binary files, modes, links and moves", async () => {
    const kinds = { "old.txt": numbered(9), "run.sh": "true\n", "logo.bin": new Uint8Array([0, 1, 2]) };
    await story({ files: kinds, ...allowAll }, async (context) => {
      const { editor, model, repository } = context;
      const { sessionId } = await editor.newSession();
      model
        .reply(
          reply.call("bash", {
            command:
              "mv old.txt new.txt && chmod +x run.sh && printf '\\000\\001' > logo.bin && ln -s run.sh link",
          }),
        )
        .reply("Done.");
      await editor.prompt(sessionId, "Change kinds");
      expect(await say(editor, sessionId, "/changes")).toContain(
        [
          "- `1` link: symbolic link changed",
          "- `2` logo.bin: changed, not as text",
          "- `3` new.txt: moved from old.txt",
          "- `4` run.sh: mode changed from 644 to 755",
        ].join("\n"),
      );
      const texts = JSON.stringify(toolCalls(editor.updates(sessionId)).at(-1)?.content);
      expect(texts).toContain("logo.bin: binary file changed (3 to 2 bytes)");
      expect(texts).toContain("run.sh: mode changed from 644 to 755");
      expect(await say(editor, sessionId, "/drop 1-4")).not.toContain("Not dropped");
      expect(await exists(join(repository.path, "link"))).toBe(false);
      expect(await readFile(join(repository.path, "logo.bin"))).toEqual(Buffer.from([0, 1, 2]));
      expect(await readFile(join(repository.path, "old.txt"), "utf8")).toBe(numbered(9));
      expect(await exists(join(repository.path, "new.txt"))).toBe(false);
      expect((await stat(join(repository.path, "run.sh"))).mode & 0o100).toBe(0);
    });
  });

  test("shows the same card and keeps its numbers after a restart", async () => {
    await story({ files, ...allowAll }, async (context) => {
      const { editor, repository } = context;
      const sessionId = await playTurn(context);
      await say(editor, sessionId, "/changes");
      const live = toolCalls(editor.updates(sessionId)).at(-1);
      await editor.restart();
      await editor.initialize();
      const before = editor.updates(sessionId).length;
      await editor.load(sessionId);
      expect(toolCalls(editor.updates(sessionId).slice(before)).at(-1)).toEqual(live);
      expect(await say(editor, sessionId, "/drop 2")).toContain("- `2` a.txt, line 30");
      expect(await readFile(join(repository.path, "a.txt"), "utf8")).toBe(numbered(40, { 3: "three" }));
    });
  });
});

describe("/drop", () => {
  test("undoes one change, informs the model, and the turn can still be undone", async () => {
    await story({ files, ...allowAll }, async (context) => {
      const { editor, repository, model } = context;
      const sessionId = await playTurn(context);
      await say(editor, sessionId, "/changes");
      expect(await say(editor, sessionId, "/drop 1")).toBe(
        "Dropped:\n\n- `1` a.txt, line 3: +1 -1\n\nThe model is informed with your next message. Until then, `/redo` restores the changes.",
      );
      const path = join(repository.path, "a.txt");
      expect(await readFile(path, "utf8")).toBe(numbered(40, { 30: "thirty" }));
      const after = treeHash(repository.path);
      model.reply("I see.");
      await editor.prompt(sessionId, "And now?");
      const sent = JSON.stringify(model.requests.at(-1)?.messages);
      expect(sent).toContain("undid the ones below");
      expect(sent).toContain("-three\\n+line 3");
      await say(editor, sessionId, "/undo 2");
      expect(await readFile(path, "utf8")).toBe(numbered(40));
      expect(await exists(join(repository.path, "b.txt"))).toBe(false);
      await say(editor, sessionId, "/redo");
      expect(treeHash(repository.path)).toBe(after);
    });
  });

  test("keeps the user's edits of other lines, and refuses lines that were edited since", async () => {
    await story({ files, ...allowAll }, async (context) => {
      const { editor, repository, model } = context;
      const sessionId = await playTurn(context);
      const path = join(repository.path, "a.txt");
      await say(editor, sessionId, "/changes");
      await writeFile(path, `mine\n${numbered(40, { 3: "three", 30: "thirty and mine" })}`);
      const answer = await say(editor, sessionId, "/drop 1 2");
      expect(answer).toContain("Dropped:\n\n- `1` a.txt, line 3: +1 -1\n\n");
      expect(answer).toContain("- `2` a.txt, line 30: +1 -1: the same lines have changed since\n\n");
      expect(answer).toContain("Edit these places by hand");
      expect(await readFile(path, "utf8")).toBe(`mine\n${numbered(40, { 30: "thirty and mine" })}`);
      const list = await say(editor, sessionId, "/changes a.txt");
      expect(list).toContain("- `1` a.txt, line 31: +1 -1; edited since, so `/drop` leaves it");
      expect(await say(editor, sessionId, "/drop a.txt")).toContain("the same place was edited since");
      model.reply("I see.");
      await editor.prompt(sessionId, "And now?");
      expect(JSON.stringify(model.requests.at(-1)?.messages)).not.toContain("thirty and mine");
    });
  });

  test("removes a created file only unedited, and restores a deleted one if none exists", async () => {
    await story({ files: { "gone.txt": "gone\n" }, ...allowAll }, async (context) => {
      const { editor, model, repository } = context;
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("bash", { command: "rm gone.txt; echo new > new.txt" })).reply("Done.");
      await editor.prompt(sessionId, "Replace it");
      await say(editor, sessionId, "/changes");
      await repository.write({ "gone.txt": "mine\n", "new.txt": "new\nand mine\n" });
      const answer = await say(editor, sessionId, "/drop 1 2");
      expect(answer).toContain("Nothing was dropped.");
      expect(answer).toContain("- `1` gone.txt: deleted, -1: another file has been created there since");
      expect(answer).toContain("- `2` new.txt: created, +1: it has changed since");
      expect(await readFile(join(repository.path, "gone.txt"), "utf8")).toBe("mine\n");
      expect(await readFile(join(repository.path, "new.txt"), "utf8")).toBe("new\nand mine\n");
      await rm(join(repository.path, "gone.txt"));
      expect(await say(editor, sessionId, "/drop gone.txt")).toContain("Dropped:\n\n- `1` gone.txt");
      expect(await readFile(join(repository.path, "gone.txt"), "utf8")).toBe("gone\n");
    });
  });

  test("of all leaves the tree of /undo, keeps messages, and can be redone and undone", async () => {
    const start = { ...files, "run.sh": "true\n", "old.txt": "old\n", "gone.txt": "gone\n" };
    await story({ files: start, ...allowAll }, async (context) => {
      const { editor, model, repository } = context;
      const tree = () => treeHash(repository.path);
      const before = tree();
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply(reply.call("edit", { filePath: "a.txt", oldString: "line 3\n", newString: "three\n" }))
        .reply(
          reply.call("bash", {
            command: "mv old.txt new.txt && rm gone.txt && chmod +x run.sh && mkdir x && echo 1 > x/y",
          }),
        )
        .reply("Changed.");
      await editor.prompt(sessionId, "Change much");
      const after = tree();
      const answer = await say(editor, sessionId, "/drop all");
      expect(answer).toContain('Dropped: all changes of the turn "Change much". The conversation stays.');
      expect(tree()).toBe(before);
      expect(await say(editor, sessionId, "/redo")).toContain("Restored what the last `/drop` removed.");
      expect(tree()).toBe(after);
      expect(await say(editor, sessionId, "/redo")).toContain("There is nothing to redo.");
      await say(editor, sessionId, "/undo");
      expect(tree()).toBe(before);
      await say(editor, sessionId, "/redo");
      expect(tree()).toBe(after);
      await say(editor, sessionId, "/drop all");
      await say(editor, sessionId, "/undo");
      expect(tree()).toBe(before);
      await say(editor, sessionId, "/redo");
      expect(tree()).toBe(before);
      model.reply("I see.");
      await editor.prompt(sessionId, "And now?");
      const sent = JSON.stringify(model.requests.at(-1)?.messages);
      expect(sent).toContain("Change much");
      expect(sent).toContain("x/y: the file is removed");
    });
  });

  test("requires a new list after new changes, and names unknown numbers", async () => {
    await story({ files, ...allowAll }, async (context) => {
      const { editor, model } = context;
      const sessionId = await playTurn(context);
      expect(await say(editor, sessionId, "/drop")).toContain("Write what to drop");
      expect(await say(editor, sessionId, "/drop 1")).toContain("Send `/changes` to see the numbers");
      await say(editor, sessionId, "/changes");
      expect(await say(editor, sessionId, "/drop 4")).toBe("There is no change 4: `/changes` listed 1 to 3.");
      expect(await say(editor, sessionId, "/drop c.txt")).toContain(
        'The agent changed nothing in "c.txt". Changed files: a.txt, b.txt.',
      );
      model.reply(reply.call("write", { filePath: "c.txt", content: "c\n" })).reply("Wrote.");
      await editor.prompt(sessionId, "Write c");
      expect(await say(editor, sessionId, "/drop 1")).toContain("The agent has changed files since");
    });
  });

  test("makes an earlier undo final", async () => {
    await story({ files, ...allowAll }, async (context) => {
      const { editor, model, repository } = context;
      const sessionId = await playTurn(context);
      model.reply(reply.call("write", { filePath: "c.txt", content: "c\n" })).reply("Wrote.");
      await editor.prompt(sessionId, "Write c");
      await say(editor, sessionId, "/undo");
      await say(editor, sessionId, "/drop b.txt");
      expect(await exists(join(repository.path, "b.txt"))).toBe(false);
      expect(await say(editor, sessionId, "/redo")).toContain("- b.txt: made again");
      expect(await say(editor, sessionId, "/redo")).toContain("There is nothing to redo.");
      expect(await exists(join(repository.path, "c.txt"))).toBe(false);
    });
  });

  test("keeps the session's diff and its summary up to date", async () => {
    await story({ files, ...allowAll }, async (context) => {
      const { editor, home } = context;
      const sessionId = await playTurn(context);
      const diff = () =>
        readFile(join(home.path, ".local/share/fairlead/storage/session_diff", `${sessionId}.json`), "utf8");
      expect(JSON.parse(await diff())).toMatchObject({ additions: 3, deletions: 2 });
      await say(editor, sessionId, "/changes");
      await say(editor, sessionId, "/drop 1 3");
      expect(JSON.parse(await diff())).toMatchObject({ additions: 1, deletions: 1 });
    });
  });

  test("is completed after a kill in the middle", async () => {
    const names = Array.from({ length: 60 }, (_, index) => `file-${index}`);
    await story({ files: {}, ...allowAll }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(...names.map((filePath) => reply.call("write", { filePath, content: "new\n" })))
        .reply("Written.");
      await editor.prompt(sessionId, "Write files");
      const left = async () => {
        const there = await Promise.all(names.map((name) => exists(join(repository.path, name))));
        return there.filter(Boolean).length;
      };
      const drop = editor.prompt(sessionId, "/drop all");
      drop.catch(() => "the kill answers it");
      await expect.poll(left, { interval: 1 }).toBeLessThan(names.length);
      await editor.kill();
      await editor.restart();
      await editor.initialize();
      await editor.load(sessionId);
      expect(await left()).toBe(0);
      model.reply("I see.");
      await editor.prompt(sessionId, "And now?");
      expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("undid the ones below");
      await say(editor, sessionId, "/undo 2");
      await say(editor, sessionId, "/redo");
      expect(await left()).toBe(0);
    });
  });
});
