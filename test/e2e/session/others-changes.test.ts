import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { Editor } from "../../support/editor/editor.ts";
import { type StoryContext, story } from "../../support/editor/story.ts";
import type { ModelRequest, ModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { toolCalls } from "../../support/transcript.ts";

const config = { permission: { edit: "allow", bash: "allow" } };
const files = { "a.txt": "one\ntwo\nthree\n", "b.txt": "b\n" };

const read = (filePath = "a.txt") => reply.call("read", { filePath });
const write = (content: string, filePath = "a.txt") => reply.call("write", { filePath, content });
const edit = (oldString: string, newString: string, filePath = "a.txt") =>
  reply.call("edit", { filePath, oldString, newString });
const bash = (command: string) => reply.call("bash", { command });

/** Has the session make the call, and returns the result that its model received. */
async function play(editor: Editor, model: ModelServer, sessionId: string, call: reply.Step) {
  model.reply(call).reply("Next.");
  await editor.prompt(sessionId, "Go on");
  return model.requests.at(-1)?.toolResults.at(-1);
}

const onDisk = ({ repository }: StoryContext, name = "a.txt") =>
  readFile(join(repository.path, name), "utf8");

const exists = ({ path }: StoryContext["repository"], name: string): Promise<boolean> =>
  access(join(path, name)).then(
    () => true,
    () => false,
  );

/** Matches the text for the model about a change by another session. */
const changed = (id: string, verb = "changed") =>
  new RegExp(`the session ("[^"]*" \\()?${id}\\)? ${verb} it less than a minute ago\\. Read its? `);

describe("a file that another session changed", () => {
  test("must be read again before a change, in one process and between two", async () => {
    await story({ files, config }, async (context) => {
      const { editor, model, home, repository } = context;
      const second = new Editor({ home: home.path, cwd: repository.path });
      try {
        await second.initialize();
        for (const other of [editor, second]) {
          const mine = (await editor.newSession()).sessionId;
          const theirs = (await other.newSession()).sessionId;
          await play(editor, model, mine, read());
          await play(other, model, theirs, read());
          await play(other, model, theirs, edit("one", "1"));
          // Without another session, exact text would be enough.
          for (const call of [edit("three", "3"), write("mine\n")])
            expect(await play(editor, model, mine, call)).toMatch(changed(theirs));
          expect(await onDisk(context)).toBe("1\ntwo\nthree\n");
          expect(JSON.stringify(toolCalls(editor.updates(mine)).at(-1)?.content)).toContain(theirs);
          await play(editor, model, mine, read());
          expect(await play(editor, model, mine, edit("1\n", "one\n"))).toMatch(/^Changed a\.txt/);
          // Changes by the session itself, also by a command or an undo, need no reading.
          await editor.prompt(mine, "/undo");
          await editor.prompt(mine, "/redo");
          expect(await play(editor, model, mine, write("1\ntwo\n"))).toMatch(/^Wrote a\.txt/);
          // A deletion is known after the file was checked.
          await play(editor, model, mine, read("b.txt"));
          await play(other, model, theirs, bash("rm b.txt"));
          expect(await play(editor, model, mine, write("new\n", "b.txt"))).toMatch(
            changed(theirs, "deleted"),
          );
          await play(editor, model, mine, read("b.txt"));
          expect(await play(editor, model, mine, write("b\n", "b.txt"))).toMatch(/^Created b\.txt/);
          await repository.write(files);
        }
        // A command that runs while another process changes a file does not count that change as its own.
        const mine = (await editor.newSession()).sessionId;
        const theirs = (await second.newSession()).sessionId;
        const own = await play(second, model, theirs, read());
        expect(own).toContain("one");
        model.reply(bash("echo mine > mine.txt; until test -e go; do sleep 0.05; done"));
        const turn = editor.prompt(mine, "Wait");
        await vi.waitUntil(() => exists(repository, "mine.txt"), 10_000);
        expect(await play(second, model, theirs, edit("two", "2"))).toMatch(/^Changed/);
        model.reply("Done.");
        await repository.write({ go: "" });
        await turn;
        expect(model.requests.at(-1)?.toolResults.at(-1)).toContain(`a.txt (by the session`);
        await editor.prompt(mine, "/undo");
        expect(await exists(repository, "mine.txt")).toBe(false);
        expect(await onDisk(context)).toBe("one\n2\nthree\n");
      } finally {
        await second.close();
      }
      second.assertClean();
    });
  });

  test("is named once after a command and at the start of a turn", async () => {
    await story({ files, config }, async ({ editor, model }) => {
      const mine = (await editor.newSession()).sessionId;
      const theirs = (await editor.newSession()).sessionId;
      await editor.prompt(theirs, "/rename Fix the numbers");
      await play(editor, model, theirs, bash("echo more >> a.txt; echo c > c.txt"));
      const line = `Others changed files here meanwhile: a.txt (by the session "Fix the numbers" (${theirs}), less than a minute ago), c.txt (`;
      model.reply("Fine.");
      await editor.prompt(mine, "Hello");
      expect(model.requests.at(-1)?.userText).toContain(line);
      await play(editor, model, theirs, write("b\nb\n", "b2.txt"));
      model.reply(bash("true")).reply(bash("echo mine > d.txt")).reply("Done.");
      await editor.prompt(mine, "Go on");
      const texts = model.requests.at(-1)?.toolResults ?? [];
      expect(texts.filter((text) => text.includes("b2.txt"))).toHaveLength(0);
      expect(model.requests.at(-1)?.userText).toContain("b2.txt");
      // Changes before the session's last read are not named.
      await play(editor, model, theirs, write("last\n", "e.txt"));
      model.reply(read("e.txt")).reply(bash("true")).reply("Done.");
      await editor.prompt(mine, "Go on");
      expect(model.requests.at(-1)?.toolResults.at(-1)).not.toContain("meanwhile");
    });
  });

  test("is known between a parent and its parallel tasks", async () => {
    await story({ files, config }, async (context) => {
      const { editor, model } = context;
      const { sessionId } = await editor.newSession();
      const task = (prompt: string) =>
        reply.callScript("task", { description: prompt, prompt, subagent_type: "general" });
      const after = (prompt: string, result?: string) => (request: ModelRequest) => {
        const last = request.toolResults.at(-1);
        const isNext = result === undefined ? last === undefined : last?.includes(result) === true;
        return request.userText.includes(prompt) && isNext;
      };
      const [first, done, second] = [reply.gate(), reply.gate(), reply.gate()];
      model.reply(read()).reply(reply.together(task("First work"), task("Second work")));
      model.when(after("First work"), read());
      model.when(after("First work", "1: one"), [first, edit("one", "1"), reply.finish("tool_calls")]);
      model.when(after("First work", "Changed"), [done, "First done."]);
      model.when(after("Second work"), read());
      model.when(after("Second work", "1: one"), [second, edit("three", "3"), reply.finish("tool_calls")]);
      model.when(after("Second work", "Read it again"), "Second done.");
      model.reply(edit("two", "2")).reply("Done.");
      const turn = editor.prompt(sessionId, "Go on");
      await Promise.all([first.reached(), second.reached()]);
      first.release();
      await done.reached();
      for (const gate of [done, second]) gate.release();
      await turn;
      const refused = model.requests
        .flatMap(({ toolResults }) => toolResults)
        .filter((text) => text.includes("less than a minute ago"));
      const byTask =
        /changed since it was read: the task "First work \(@general\)" \(ses_\w+\) changed it less than/;
      expect(refused).toEqual([expect.stringMatching(byTask), expect.stringMatching(byTask)]);
      expect(await onDisk(context)).toBe("1\ntwo\nthree\n");
    });
  });
});
