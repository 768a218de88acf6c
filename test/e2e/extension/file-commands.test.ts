import { readdir } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent, type StoryContext } from "../../support/editor/story.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const asking = { permission: { bash: "ask" } };

const home = (name: string, text: string) => ({ [`.config/fairlead/commands/${name}.md`]: text });

async function commandsOf({ editor }: StoryContext, sessionId: string) {
  return (await editor.waitForKind(sessionId, "available_commands_update")).availableCommands;
}

describe("a command from a file", () => {
  test("is offered, and the model receives its text with arguments and files", async () => {
    const files = {
      ".opencode/command/git/explain.md":
        "---\ndescription: Explain a file\n---\nExplain $1 for $2. Conventions: @docs/rules.md, ask @nobody.",
      "docs/rules.md": "Be brief.\n",
    };
    await story({ files }, async (context) => {
      const { editor, model } = context;
      const { sessionId } = await editor.newSession();
      expect(await commandsOf(context, sessionId)).toContainEqual({
        name: "git/explain",
        description: "Explain a file",
        input: { hint: "arguments" },
      });
      model.reply("Explained.");
      await editor.prompt(sessionId, "/git/explain a.ts two people");
      const { userText = "" } = model.requests[0] ?? {};
      expect(userText).toContain("Explain a.ts for two people. Conventions: @docs/rules.md, ask @nobody.");
      expect(userText).toContain("Be brief.");
      expect(userText).not.toContain("/git/explain");
      model.reply("Text.");
      await editor.prompt(sessionId, "/git/unknown stays text");
      expect(model.requests[1]?.userText).toContain("/git/unknown stays text");
    });
  });

  test("attaches the files that the user names in its arguments", async () => {
    const files = { "docs/rules.md": "Be brief.\n", ".opencode/command/look.md": "Look at $ARGUMENTS." };
    await story({ files }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Looked.");
      await editor.prompt(sessionId, "/look @docs/rules.md");
      const { userText = "" } = model.requests[0] ?? {};
      expect(userText).toContain("Look at @docs/rules.md.");
      expect(userText.match(/Be brief\./g)).toEqual(["Be brief."]);
    });
  });

  test("uses its agent and model for its message only", async () => {
    const template = "---\nagent: plan\n---\nPlan $ARGUMENTS";
    await story({ homeFiles: home("think", template) }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("A plan.");
      await editor.prompt(sessionId, "/think of it");
      expect(model.requests[0]?.userText).toContain("Plan mode is on.");
      model.reply("Done.");
      await editor.prompt(sessionId, "Now do it");
      expect(model.requests[1]?.userText).toContain("The mode changed from plan to build.");
      expect(editor.updates(sessionId, "current_mode_update")).toEqual([]);
    });
  });

  test("runs its own command lines after the user has agreed", async () => {
    const template = "The last commits: !`git log --format=%s` Done? $ARGUMENTS";
    const options = { config: asking, homeFiles: home("log", template) };
    await story({ ...options, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Yes.");
      await editor.prompt(sessionId, "/log well");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
        "git log --format=%s",
      ]);
      expect(model.requests[0]?.userText).toContain("The last commits: First Done? well");
      expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual(["completed"]);
    });
  });

  test("sends nothing to the model after a rejection", async () => {
    const options = { config: asking, homeFiles: home("log", "!`git log`") };
    await story({ ...options, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      expect((await editor.prompt(sessionId, "/log")).stopReason).toBe("end_turn");
      expect(model.requests).toEqual([]);
      expect(agentText(editor.updates(sessionId))).toContain("The command did not run.");
    });
  });

  test("that is cancelled during its question ends as cancelled", async () => {
    const options = { config: asking, homeFiles: home("log", "!`git log`") };
    await story({ ...options, permission: "never" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const turn = editor.prompt(sessionId, "/log");
      await editor.permissionRequest(1);
      await editor.cancel(sessionId);
      expect((await turn).stopReason).toBe("cancelled");
      model.reply("Yes.");
      await editor.prompt(sessionId, "Hi");
      expect(model.requests).toHaveLength(1);
    });
  });

  test("never runs its arguments", async () => {
    const homeFiles = { ...home("echo", "Say: $ARGUMENTS"), ...home("show", '!`echo "$1"` seen') };
    await story(
      { config: asking, homeFiles, permission: "allow_once" },
      async ({ editor, model, repository }) => {
        const { sessionId } = await editor.newSession();
        model.reply("Hello.");
        await editor.prompt(sessionId, "/echo hello !`touch x` @/etc/passwd");
        expect(editor.permissionRequests).toEqual([]);
        expect(model.requests[0]?.userText).toContain("Say: hello !`touch x` @/etc/passwd");
        model.reply("Seen.");
        await editor.prompt(sessionId, "/show $(touch${IFS}x)';touch'x");
        expect(model.requests[1]?.userText).toContain("$(touch${IFS}x)';touch'x");
        expect(await readdir(repository.path)).not.toContain("x");
      },
    );
  });

  test("reads no outside files without a question", async () => {
    const files = { ".opencode/command/innocent.md": "Look at @../../../../../../etc/hostname" };
    await story({ files, permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "/innocent");
      expect(editor.permissionRequests).toHaveLength(1);
      expect(model.requests).toEqual([]);
    });
  });
});

describe("a project's command with shell text", () => {
  test("is available once the user trusts the project", async () => {
    const files = {
      ".opencode/command/theirs.md": "!`touch made` x",
      ".claude/commands/others.md": "!`touch made` y",
    };
    await story({ files, permission: "reject_once" }, async (context) => {
      const { editor, model, repository } = context;
      const { sessionId } = await editor.newSession();
      const names = (await commandsOf(context, sessionId)).map(({ name }) => name);
      expect(names).not.toEqual(expect.arrayContaining(["theirs"]));
      await editor.prompt(sessionId, "/theirs");
      expect(model.requests).toEqual([]);
      expect(JSON.stringify(editor.permissionRequests)).toContain("run shell text in the command");
      expect(await readdir(repository.path)).not.toContain("made");
      editor.permission = "allow_once";
      const { sessionId: later } = await editor.newSession();
      model.reply("Made.");
      await editor.prompt(later, "/others");
      expect(model.requests.at(-1)?.userText).toContain("(no output) y");
      expect(await readdir(repository.path)).toContain("made");
      const updated = editor.updates(later, "available_commands_update").at(-1);
      expect(updated?.availableCommands.map(({ name }) => name)).toEqual(
        expect.arrayContaining(["theirs", "others"]),
      );
    });
  });
});

describe("files of other programs", () => {
  test("work unchanged as in a project for OpenCode", async () => {
    const files = {
      "opencode.json": JSON.stringify({
        $schema: "https://opencode.ai/config.json",
        command: { hello: { template: "Say hello to $ARGUMENTS", description: "Greets" } },
      }),
      ".opencode/agent/docs.md":
        "---\ndescription: Writes documentation\nmode: primary\ntools:\n  bash: false\n---\nYou write documentation.",
      ".opencode/command/test.md": "---\ndescription: Run tests\nagent: docs\n---\nRun the tests of $1.",
      ".opencode/skill/naming/SKILL.md":
        "---\nname: naming\ndescription: How things are called\n---\nBriefly.",
    };
    await story({ files }, async (context) => {
      const { editor, model } = context;
      const { sessionId, modes } = await editor.newSession();
      expect(modes?.availableModes.map(({ id }) => id)).toContain("docs");
      const names = (await commandsOf(context, sessionId)).map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(["hello", "test", "naming"]));
      model.reply(reply.call("skill", { name: "naming" })).reply("Tested.");
      await editor.prompt(sessionId, "/test core");
      expect(JSON.stringify(model.requests[0]?.body.messages)).toContain("You write documentation.");
      expect(model.requests[0]?.toolNames).not.toContain("bash");
      expect(model.requests[1]?.toolResults).toEqual([expect.stringContaining("Briefly.")]);
    });
  });

  test("work unchanged as in a project for Claude Code", async () => {
    const files = {
      "CLAUDE.md": "Use tabs.\n",
      ".claude/settings.json": "{}",
      ".claude/agents/checker.md":
        "---\nname: checker\ndescription: Use this agent when code changed. Examples: user: check it\ntools: Read, Grep\nmodel: sonnet\n---\nYou check.",
      ".claude/commands/fix.md":
        "---\ndescription: Fix an issue\nargument-hint: [issue] [priority]\nallowed-tools: Bash(git:*), Read\nmodel: claude-sonnet-4\nagent: checker\n---\nFix issue $1 with priority $2.",
      ".claude/skills/pdf/SKILL.md":
        "---\nname: pdf\ndescription: Fill PDF forms\nallowed-tools: Read\nlicense: MIT\n---\nUse a tool.",
    };
    await story({ files }, async (context) => {
      const { editor, model } = context;
      const { sessionId } = await editor.newSession();
      expect(await commandsOf(context, sessionId)).toEqual(
        expect.arrayContaining([
          { name: "fix", description: "Fix an issue", input: { hint: "[issue] [priority]" } },
          { name: "pdf", description: "Fill PDF forms", input: { hint: "what to do" } },
        ]),
      );
      model.reply("Fixed.").reply("It is fixed.");
      await editor.prompt(sessionId, "/fix 12 high");
      const [request, after] = model.requests;
      expect(after?.toolResults).toEqual([expect.stringMatching(/^Fixed\.\n[^]*agent: checker/)]);
      expect(request?.userText).toContain("Fix issue 12 with priority high.");
      const system = JSON.stringify(request?.body.messages);
      for (const part of ["You check.", "Use tabs.", "- pdf: Fill PDF forms"]) expect(system).toContain(part);
      expect(request?.toolNames).toEqual(expect.arrayContaining(["read", "grep"]));
      for (const name of ["edit", "write", "bash"]) expect(request?.toolNames).not.toContain(name);
    });
  });
});
