import { existsSync } from "node:fs";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { describe, expect, test } from "vitest";
import type { Editor } from "../../support/editor/editor.ts";
import { storiesOfOneAgent, type StoryContext } from "../../support/editor/story.ts";
import { expectFailure } from "../../support/failure.ts";
import type { ModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { temporaryFolder } from "../../support/temp.ts";
import { agentText, thoughtText, toolCalls } from "../../support/transcript.ts";
import { lacksFileModes, printFolder } from "../../support/platform/platform.ts";

const story = storiesOfOneAgent();
const config = { permission: { edit: "allow", bash: "allow" } };
const files = {
  "a.txt": "one\ntwo\nthree\n",
  "b.txt": "b\n",
  "src/c.txt": "c\n",
  "AGENTS.md": "Speak plainly.\n",
};

const write = (filePath: string, content: string) => reply.call("write", { filePath, content });
const edit = (filePath: string, oldString: string, newString: string) =>
  reply.call("edit", { filePath, oldString, newString });
const bash = (command: string) => reply.call("bash", { command });

async function play(editor: Editor, model: ModelServer, sessionId: string, call: reply.Step) {
  model.reply(call).reply("Next.");
  await editor.prompt(sessionId, "Go on");
  return model.requests.at(-1)?.toolResults.at(-1) ?? "";
}

const text = ({ repository }: StoryContext, name: string) => readFile(join(repository.path, name), "utf8");
const save = ({ repository }: StoryContext, name: string, content: string) =>
  writeFile(join(repository.path, name), content);
const branches = async ({ repository }: StoryContext) =>
  (await execa("git", ["branch", "--format=%(refname:short)"], { cwd: repository.path })).stdout.split("\n");

const isolated = { _meta: { worktree: true } };

describe("a session in a worktree", () => {
  test("works apart from the checkout and is merged after the user's approval", async () => {
    await story({ files, config, permission: "allow_once" }, async (context) => {
      const { editor, model, repository } = context;
      await save(context, "b.txt", "changed before\n");
      await save(context, "new.txt", "untracked\n");
      const { sessionId } = await editor.newSession(isolated);
      // The tools, the instructions and the uncommitted changes are those of the worktree.
      const printed = await play(editor, model, sessionId, bash(`${printFolder}; cat b.txt; ls new.txt`));
      const said = thoughtText(editor.updates(sessionId));
      const folder = /works in the worktree (\S+) on/.exec(said)?.[1] ?? "";
      expect(printed).toContain(`${folder}\nchanged before\n`);
      expect(existsSync(folder)).toBe(true);
      expect(said).toContain("Not copied from the checkout: 1 untracked file or folder.");
      expect(JSON.stringify(model.requests.at(-1))).toContain("Speak plainly.");
      await play(editor, model, sessionId, edit("a.txt", "one", "1"));
      await play(editor, model, sessionId, write("src/d.txt", "d\n"));
      await play(
        editor,
        model,
        sessionId,
        bash("rm src/c.txt; chmod +x src/d.txt; git add -A; git commit -qm x"),
      );
      expect(
        toolCalls(editor.updates(sessionId)).flatMap(({ locations = [] }) => locations ?? []),
      ).toContainEqual(expect.objectContaining({ path: join(folder, "a.txt") }));
      expect(await text(context, "a.txt")).toBe("one\ntwo\nthree\n");
      // The checkout outside of the worktree is not in the workspace.
      expect(editor.permissionRequests).toHaveLength(0);
      await play(editor, model, sessionId, reply.call("read", { filePath: join(repository.path, "a.txt") }));
      expect(editor.permissionRequests).toHaveLength(1);

      await save(context, "a.txt", "one\ntwo\nthree\nfour\n");
      await editor.prompt(sessionId, "/merge");
      const request = editor.permissionRequests.at(-1);
      expect(JSON.stringify(request)).toContain("1\\ntwo\\nthree\\nfour\\n");
      expect(await text(context, "a.txt")).toBe("1\ntwo\nthree\nfour\n");
      expect(await text(context, "src/d.txt")).toBe("d\n");
      expect(existsSync(join(repository.path, "src/c.txt"))).toBe(false);
      if (!lacksFileModes) expect((await stat(join(repository.path, "src/d.txt"))).mode & 0o111).not.toBe(0);
      expect(agentText(editor.updates(sessionId))).toMatch(/Merged 3 files of fairlead\/\w{8} into /);
      await editor.prompt(sessionId, "/merge");
      expect(JSON.stringify(editor.updates(sessionId))).toContain("Nothing to merge");

      // An undo restores the checkout, and the changes can be merged again.
      await editor.prompt(sessionId, "/undo 2");
      expect(await text(context, "a.txt")).toBe("one\ntwo\nthree\nfour\n");
      expect(await text(context, "src/c.txt")).toBe("c\n");
      await editor.prompt(sessionId, "/merge");
      expect(await text(context, "a.txt")).toBe("1\ntwo\nthree\nfour\n");
      await editor.closeSession(sessionId);
      expect(existsSync(folder)).toBe(false);
      // The session is listed in the folder of the editor, and continues in a new worktree.
      expect((await editor.list()).sessions.map((one) => one.sessionId)).toContain(sessionId);
      await editor.load(sessionId);
      expect(await play(editor, model, sessionId, bash(`${printFolder}; cat a.txt`))).toContain(
        `${folder}\n1\ntwo`,
      );
    });
  });

  test("merges into a file that has not the line ends of git's checkouts", async () => {
    const homeFiles = { ".config/git/config": "[core]\n\tautocrlf = true\n" };
    await story({ files, homeFiles, config, permission: "allow_once" }, async (context) => {
      const { editor, model } = context;
      const { sessionId } = await editor.newSession(isolated);
      expect(await play(editor, model, sessionId, bash("od -c b.txt"))).toContain("b  \\r  \\n");
      await play(editor, model, sessionId, edit("a.txt", "one", "1"));
      await save(context, "a.txt", "one\ntwo\nthree\nfour\n");
      await editor.prompt(sessionId, "/merge");
      expect(await text(context, "a.txt")).toBe("1\ntwo\nthree\nfour\n");
    });
  });

  test("names conflicts, discards work only after approval, and keeps unmerged work", async () => {
    await story({ files, config, permission: "allow_once" }, async (context) => {
      const { editor, model } = context;
      const { sessionId } = await editor.newSession(isolated);
      const folder = (await play(editor, model, sessionId, bash(printFolder))).trim().split("\n")[0] ?? "";
      await play(editor, model, sessionId, edit("a.txt", "two", "2"));
      await play(editor, model, sessionId, bash("rm b.txt"));
      await save(context, "a.txt", "one\nTWO\nthree\n");
      await save(context, "b.txt", "also changed\n");
      await editor.prompt(sessionId, "/merge");
      expect(await text(context, "a.txt")).toMatch(
        /^one\n<<<<<<< main checkout\nTWO\n=======\n2\n>>>>>>> fairlead\/\w{8}\nthree\n$/,
      );
      expect(await text(context, "b.txt")).toBe("also changed\n");
      const answer = agentText(editor.updates(sessionId));
      expect(answer).toContain("Conflicts in a.txt");
      expect(answer).toContain("Not merged: b.txt: it was deleted in the worktree and changed here");
      await editor.closeSession(sessionId);
      expect(existsSync(folder)).toBe(true);
      await editor.load(sessionId);
      await play(editor, model, sessionId, write("e.txt", "e\n"));
      await editor.prompt(sessionId, "/merge drop");
      expect(JSON.stringify(editor.permissionRequests.at(-1))).toContain("Discard the changes of");
      expect(existsSync(join(folder, "a.txt"))).toBe(true);
      expect(existsSync(join(folder, "e.txt"))).toBe(false);
      await editor.closeSession(sessionId);
      expect(existsSync(folder)).toBe(false);
    });
  });

  test("is refused outside git, and a session without one has nothing to merge", async () => {
    await using outside = await temporaryFolder();
    await story({ files, config, permission: "reject_once" }, async (context) => {
      const { editor, model } = context;
      const before = await branches(context);
      const failure = await expectFailure(editor.newSession({ ...isolated, cwd: outside.path }));
      expect(failure.message).toContain("A worktree needs a git repository");
      const plain = (await editor.newSession()).sessionId;
      await editor.prompt(plain, "/merge");
      expect(agentText(editor.updates(plain))).toContain("Nothing to merge: no worktree");
      const { sessionId } = await editor.newSession(isolated);
      await play(editor, model, sessionId, edit("a.txt", "two", "2"));
      await editor.prompt(sessionId, "/merge");
      expect(await text(context, "a.txt")).toBe("one\ntwo\nthree\n");
      await editor.prompt(sessionId, "/undo 2");
      await editor.closeSession(sessionId);
      expect(await branches(context)).toEqual(before);
    });
  });

  test("follows rules for paths of the checkout", async () => {
    await story({ files, config, permission: "reject_once" }, async ({ editor, home, model, repository }) => {
      const secret = JSON.stringify(join(repository.path, "src/*"));
      const permission = `{edit: {"*": allow, ${secret}: deny}, bash: {"*": allow}, read: {${secret}: deny}}`;
      await home.write({ ".config/fairlead/agent/build.md": `---\npermission: ${permission}\n---\n` });
      const { sessionId } = await editor.newSession(isolated);
      const plays = [
        write("src/d.txt", "d\n"),
        bash("echo d > src/d.txt"),
        reply.call("read", { filePath: "src/c.txt" }),
      ];
      for (const call of plays)
        expect(await play(editor, model, sessionId, call)).toContain("A rule forbids");
      expect(await play(editor, model, sessionId, write("d.txt", "d\n"))).toContain("Created d.txt");

      const plain = (await editor.newSession()).sessionId;
      const task = { description: "Write", prompt: "Write", subagent_type: "general", worktree: true };
      model.reply(reply.call("task", task)).reply(write("src/d.txt", "d\n")).reply("Done.").reply("Next.");
      await editor.prompt(plain, "Go on");
      expect(model.requests.at(-2)?.toolResults.at(-1)).toContain("A rule forbids");
    });
  });
});
