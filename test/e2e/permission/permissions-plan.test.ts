import { describe, expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const goOn = { experimental: { continue_loop_on_deny: true } };

/** Each would change the repository or its surroundings if it ran. */
const writingCommands = [
  "echo x > made",
  "echo x >> a.txt",
  "printf x | tee made",
  ": > made",
  "> made",
  "touch made",
  "mkdir made",
  "cp a.txt made",
  "mv a.txt made",
  "rm a.txt",
  "ln -s a.txt made",
  "sed -i s/one/1/ a.txt",
  "sed -n 'w made' a.txt",
  "awk '{ print > \"made\" }' a.txt",
  "awk 'BEGIN { system(\"touch made\") }'",
  "sort -o a.txt a.txt",
  "find . -name a.txt -delete",
  "find . -name a.txt -exec touch made ;",
  "find . -name a.txt -fprint made",
  "git commit -am x",
  "git checkout -b other",
  "git branch other",
  "git stash",
  "git -c alias.x='!touch made' x",
  "git diff --output=made",
  "git log --output=made",
  "git grep --open-files-in-pager='touch made' one",
  "GIT_EXTERNAL_DIFF='touch made' git diff",
  "rg --pre 'touch made' one",
  "ls $(touch made)",
  "ls `touch made`",
  "cat <(touch made)",
  "bash -c 'touch made'",
  'sh -c "touch made"',
  "eval 'touch made'",
  "env touch made",
  "nohup touch made",
  "timeout 5 touch made",
  "xargs touch < a.txt",
  "ls | xargs -I{} touch made",
  "command touch made",
  "cat a.txt && touch made",
  "cat a.txt; touch made",
  "false || touch made",
  "(touch made)",
  "{ touch made; }",
  "if true; then touch made; fi",
  "for f in made; do touch $f; done",
  "f() { touch made; }; f",
  "X=touch; $X made",
  "ls() { touch made; }; ls",
  "trap 'touch made' EXIT",
  "python3 -c \"open('made', 'w')\"",
  "node -e \"require('fs').writeFileSync('made', '')\"",
  "perl -e 'open(F, \">made\")'",
  "dd if=a.txt of=made",
  "tar -cf made a.txt",
  "tree -o made",
  "npm test",
  "make",
  "tail -n1 a.txt > made",
  "date -s 2020-01-01",
  "cat a.txt > $HOME/made",
  "head a.txt | sh",
  "sed ':x w made' a.txt",
  "sed ':x e touch made' a.txt",
  "git branch --list --no-list other",
  "git config --list --no-list core.pager 'touch made'",
  "echo $(( $(date '+a[$(touch made)]') ))",
];

describe("plan mode", () => {
  const kinds: [string, unknown][] = [
    ["allows everything", "allow"],
    ["allows edits and commands by name", { edit: "allow", bash: { "*": "allow", "touch *": "allow" } }],
  ];
  test.each(kinds)(
    "changes nothing by any command if the configuration %s",
    async (_, permission) => {
      const files = {
        "a.txt": "one\n",
        "package.json": '{"scripts":{"test":"touch made"}}\n',
        Makefile: "all:\n\ttouch made\n",
      };
      const options = { files, config: { ...goOn, permission }, permission: "reject_once" } as const;
      await story(options, async ({ editor, model, repository, home }) => {
        const { sessionId } = await editor.newSession();
        await editor.setMode(sessionId, "plan");
        for (const command of writingCommands) model.reply(reply.call("bash", { command }));
        model.reply("I only plan.");
        await editor.prompt(sessionId, "Go");
        const calls = toolCalls(editor.updates(sessionId));
        expect(calls.map(({ title }) => title)).toEqual(writingCommands);
        expect(calls.filter(({ status }) => status !== "failed").map(({ title }) => title)).toEqual([]);
        expect(await repository.git("status", "--porcelain")).toBe("");
        expect(await repository.git("log", "--oneline", "--all")).toMatch(/^\w+ \(.*\) First$|^\w+ First$/);
        expect(await repository.git("branch", "--list")).toBe("* main");
        await expect(home.write({}).then(() => repository.git("stash", "list"))).resolves.toBe("");
      });
    },
    60_000,
  );

  test("cannot edit by tools either, and runs a command that the user approves", async () => {
    const config = { ...goOn, permission: "allow" };
    await story({ config, files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      editor.permission = "allow_once";
      model
        .reply(reply.call("write", { filePath: "b.txt", content: "x" }))
        .reply(reply.call("write", { filePath: ".fairlead/plans/p.md", content: "x\n" }))
        .reply(reply.call("bash", { command: "npm --version" }))
        .reply("Done.");
      await editor.prompt(sessionId, "Go");
      const statuses = toolCalls(editor.updates(sessionId)).map(({ status }) => status);
      expect(statuses).toEqual(["failed", "completed", "completed"]);
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual(["npm --version"]);
      expect(editor.permissionRequests[0]?.options.map(({ kind }) => kind)).toEqual([
        "allow_once",
        "reject_once",
      ]);
      expect(await repository.git("status", "--porcelain")).toBe("?? .fairlead/");
    });
  });

  test("is not widened by project approvals or the auto-approve setting", async () => {
    const config = { ...goOn, permission: { bash: "ask" } };
    await story({ config, files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      editor.permission = "allow_always";
      model.reply(reply.call("bash", { command: "git branch one" })).reply("Done.");
      await editor.prompt(sessionId, "Go");
      expect(await repository.git("branch", "--list", "one")).toBe("  one");
      await editor.setMode(sessionId, "plan");
      await editor.setConfigOption(sessionId, "approval", "auto");
      editor.permission = "reject_once";
      model.reply(reply.call("bash", { command: "git branch two" })).reply("No.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(2);
      expect(await repository.git("branch", "--list", "two")).toBe("");
    });
  });

  test("applies at once to a running turn, its tasks and its pending questions", async () => {
    const config = { ...goOn, permission: { bash: { "git tag *": "ask" } } };
    await story({ config, files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      const task = { description: "Work", prompt: "In a task", subagent_type: "general" };
      editor.permission = async () => {
        await editor.setMode(sessionId, "plan");
        return "reject_once" as const;
      };
      model
        .reply(reply.call("write", { filePath: "before.txt", content: "x" }), reply.call("task", task))
        .reply(gate, reply.call("bash", { command: "git tag one" }))
        .reply(reply.call("write", { filePath: "in-task.txt", content: "x" }))
        .reply("Done in the task.")
        .reply(reply.call("write", { filePath: "behind.txt", content: "x" }))
        .reply("Done.");
      const turn = editor.prompt(sessionId, "Go");
      await gate.reached();
      gate.release();
      await turn;
      expect(await repository.git("status", "--porcelain")).toBe("?? before.txt");
      await editor.setMode(sessionId, "build");
      model.reply(reply.call("write", { filePath: "later.txt", content: "x" })).reply("Done.");
      await editor.prompt(sessionId, "Go on");
      expect(await repository.git("status", "--porcelain")).toBe("?? before.txt\n?? later.txt");
    });
  });

  test("reads and writes its plan unasked if all commands and edits ask", async () => {
    const config = { permission: { edit: "ask", bash: { "*": "ask", "npm test": "allow" } } };
    await story({ config, permission: "reject_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      model
        .reply(reply.call("bash", { command: "git log --oneline -3" }))
        .reply(reply.call("write", { filePath: ".fairlead/plans/x.md", content: "# Plan\n" }))
        .reply(reply.call("write", { filePath: "made.txt", content: "x\n" }))
        .reply("Planned.");
      await editor.prompt(sessionId, "Plan it");
      expect(editor.permissionRequests).toEqual([]);
      const statuses = toolCalls(editor.updates(sessionId)).map(({ status }) => status);
      expect(statuses).toEqual(["completed", "completed", "failed"]);
      expect(await repository.git("status", "--porcelain")).toBe("?? .fairlead/");
    });
  });

  test("reads without asking", async () => {
    const commands = [
      "git log --oneline",
      "cat a.txt | wc -l",
      "grep -n one a.txt",
      "find . -name '*.txt'",
      "git diff HEAD 2>&1 | head -5",
    ];
    await story({ files: { "a.txt": "one\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      for (const command of commands) model.reply(reply.call("bash", { command }));
      model.reply("Read.");
      await editor.prompt(sessionId, "Go");
      const statuses = toolCalls(editor.updates(sessionId)).map(({ status }) => status);
      expect(statuses).toEqual(commands.map(() => "completed"));
    });
  });
});
