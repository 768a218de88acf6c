import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { expectFailure } from "../../support/failure.ts";
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

  test("with errors are named, and the session opens", async () => {
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

describe("skills of the client", () => {
  const loads = (name: string) => reply.call("skill", { name });
  const given = (name: string, content = `How to do ${name}.`) => ({
    name,
    description: `For ${name}.`,
    content,
  });

  test("are listed, follow the rules, and end when a session opens without them", async () => {
    const files = { ".agents/skills/style/SKILL.md": skill("style", "How we write.") };
    const config = { permission: { skill: { secret: "deny" } } };
    await story({ files, config }, async ({ editor, model }) => {
      const skills = [given("deploy", "Run the pipeline."), given("style"), given("secret")];
      const { sessionId } = await editor.newSession({ _meta: { skills } });
      model.reply(loads("deploy")).reply(loads("style")).reply(loads("secret")).reply("Done.");
      await editor.prompt(sessionId, "Deploy it");
      const system = JSON.stringify(model.requests[0]?.body.messages);
      expect(system).toContain("- deploy: For deploy. (from the editor)");
      expect(system).toContain("- style: How we write.");
      expect(system).not.toContain("For secret.");
      expect(model.requests.slice(1, 4).flatMap(({ toolResults }) => toolResults)).toEqual([
        expect.stringMatching(/Run the pipeline\.[^]*editor gave this skill/),
        expect.stringContaining("Do it."),
        expect.stringContaining("is set to deny"),
      ]);
      const shown = JSON.stringify(editor.updates(sessionId));
      expect(shown).toContain("because others have their names: style");
      const commands = () =>
        editor
          .updates(sessionId, "available_commands_update")
          .at(-1)
          ?.availableCommands.map(({ name }) => name);
      expect(commands()).toContain("deploy");

      await editor.closeSession(sessionId);
      await editor.load(sessionId);
      expect(commands()).not.toContain("deploy");
      model.reply(loads("deploy")).reply("No.");
      await editor.prompt(sessionId, "Deploy it again");
      expect(model.requests.at(-1)?.toolResults.at(-1)).toContain('There is no skill "deploy"');
      await editor.load(sessionId, { _meta: { skills: [given("deploy")] } });
      expect(commands()).toContain("deploy");
    });
  });

  test("are bounded, and the error names the invalid field", async () => {
    await story({}, async ({ editor }) => {
      const fault = async (skills: unknown) =>
        (await expectFailure(editor.newSession({ _meta: { skills } }))).message;
      expect(await fault({})).toContain("_meta.skills: ");
      expect(await fault([{ name: "two words", description: "D", content: "C" }])).toContain(
        "_meta.skills.0.name: ",
      );
      expect(await fault([given("a", "x".repeat(100_001))])).toContain("_meta.skills.0.content: ");
      expect(await fault(Array.from({ length: 101 }, (_, at) => given(`s${at}`)))).toContain(
        "_meta.skills: ",
      );
      expect(
        await fault(Array.from({ length: 11 }, (_, at) => given(`s${at}`, "x".repeat(99_999)))),
      ).toContain("the limit is 1000000");
      expect(await fault([given("a"), given("a")])).toContain('two have the name "a"');
    });
  });
});
