import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const skill = (name: string, description: string, body = "Do it.") =>
  `---\nname: ${name}\ndescription: ${description}\n---\n${body}\n`;

const homeFiles = {
  ".claude/skills/release/SKILL.md": skill("release", "How we release.", "Read steps.md, then tag."),
  ".claude/skills/release/steps.md": "First test.\n",
};

test("problems of the same kind in many files are one line of /reload", async () => {
  const files = Object.fromEntries(
    Array.from({ length: 30 }, (_, index) => [
      `.claude/skills/s${index}/SKILL.md`,
      index < 10 ? skill(`Odd name ${index}`, "D") : `---\nname: s${index}\n---\nNo description.\n`,
    ]),
  );
  await story({ files }, async ({ editor }) => {
    const { sessionId } = await editor.newSession();
    await editor.prompt(sessionId, "/reload");
    const lines = agentText(editor.updates(sessionId))
      .split("\n")
      .filter((line) => line.startsWith("- "));
    expect(lines).toEqual([
      expect.stringMatching(/SKILL\.md: its name "Odd name \d" is invalid.* and 7 more\)$/),
      expect.stringMatching(/SKILL\.md: description: .* and 17 more\)$/),
    ]);
  });
});

describe("skills", () => {
  test("are listed with descriptions, loaded by a call, and read without asking", async () => {
    const files = { ".agents/skills/style/SKILL.md": skill("style", "How we write.") };
    await story({ homeFiles, files }, async ({ editor, model, home }) => {
      const { sessionId } = await editor.newSession();
      const steps = join(home.path, ".claude/skills/release/steps.md");
      model.reply(reply.call("skill", { name: "release" }));
      model.reply(reply.call("read", { filePath: steps }));
      model.reply("Released.");
      await editor.prompt(sessionId, "Release it");
      const system = JSON.stringify(model.requests[0]?.body.messages);
      expect(system).toContain("- release: How we release.");
      expect(system).toContain("- style: How we write.");
      expect(system).toContain("- configure-fairlead: ");
      expect(system).not.toContain("then tag");
      expect(model.requests[1]?.toolResults).toEqual([
        expect.stringMatching(/Read steps\.md, then tag\.[^]*\.claude\/skills\/release; [^]*- steps\.md/),
      ]);
      expect(model.requests[2]?.toolResults.at(-1)).toContain("First test.");
      expect(toolCalls(editor.updates(sessionId)).map(({ title, status }) => [title, status])).toEqual([
        ["Load the skill release", "completed"],
        [expect.stringContaining("steps.md"), "completed"],
      ]);
    });
  });

  test("that a rule denies are neither listed nor loaded", async () => {
    const config = { permission: { skill: { "*": "allow", release: "deny" } } };
    await story({ homeFiles, config }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("skill", { name: "release" })).reply("No.");
      await editor.prompt(sessionId, "Release it");
      expect(JSON.stringify(model.requests[0]?.body.messages)).not.toContain("How we release");
      expect(model.requests[1]?.toolResults).toEqual([expect.stringContaining("A rule forbids skill")]);
      await editor.prompt(sessionId, "/release now");
      expect(model.requests).toHaveLength(2);
    });
  });

  test("are commands too, and changing one needs confirmation", async () => {
    await story({ homeFiles, permission: "reject_once" }, async ({ editor, model, home }) => {
      const { sessionId } = await editor.newSession();
      const { availableCommands } = await editor.waitForKind(sessionId, "available_commands_update");
      expect(availableCommands).toContainEqual({
        name: "release",
        description: "How we release.",
        input: { hint: "what to do" },
      });
      const filePath = join(home.path, ".claude/skills/release/more.md");
      model.reply(reply.call("write", { filePath, content: "x" }));
      await editor.prompt(sessionId, "/release version 2");
      expect(model.requests[0]?.userText).toContain("Read steps.md, then tag.");
      expect(model.requests[0]?.userText).toContain("version 2");
      expect(model.requests[0]?.userText).not.toContain("/release version");
      expect(editor.permissionRequests).toHaveLength(1);
    });
  });

  test("with something wrong are named, and the session opens", async () => {
    const files = {
      ".claude/skills/a/SKILL.md": "---\nname: a\n---\nNothing said.",
      ".claude/skills/release/SKILL.md": skill("release", "The project's."),
    };
    await story({ homeFiles, files }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Yes.");
      await editor.prompt(sessionId, "Hi");
      const replyText = JSON.stringify(editor.updates(sessionId));
      expect(replyText).toContain(join(repository.path, ".claude/skills/a/SKILL.md: description: "));
      expect(replyText).toContain(`${join(repository.path, ".claude/skills/release/SKILL.md")}: is used; `);
    });
  });
});
