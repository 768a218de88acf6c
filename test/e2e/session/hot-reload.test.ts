import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, thoughtText } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const agentFile = "---\ndescription: Ours.\nmode: primary\n---\nWork as ours.";

describe("files that change while a session is open", () => {
  test("apply from the next turn on, and the editor is notified", async () => {
    await story({}, async ({ editor, model, repository, home }) => {
      const { sessionId } = await editor.newSession();
      model.reply("One.");
      await editor.prompt(sessionId, "Go");
      expect(editor.updates(sessionId, "available_commands_update")).toHaveLength(1);
      await repository.write({
        ".fairlead/agents/ours.md": agentFile,
        ".fairlead/commands/hi.md": "Say hi to $ARGUMENTS",
        "AGENTS.md": "Be kind.\n",
      });
      await home.write({ ".claude/skills/new/SKILL.md": "---\ndescription: Brand new.\n---\nText." });
      model.reply("Hi.");
      await editor.prompt(sessionId, "/hi you");
      expect(model.requests[1]?.userText).toContain("Say hi to you");
      const system = JSON.stringify(model.requests[1]?.body.messages);
      expect(system).toContain("- new: Brand new.");
      expect(system).toContain("Be kind.");
      const [, commands] = editor.updates(sessionId, "available_commands_update");
      expect(commands?.availableCommands.map(({ name }) => name)).toEqual(
        expect.arrayContaining(["hi", "new", "undo"]),
      );
      const [options] = editor.updates(sessionId, "config_option_update");
      expect(JSON.stringify(options?.configOptions)).toContain('"ours"');
      await editor.setConfigOption(sessionId, "mode", "ours");
      model.reply("As ours.");
      await editor.prompt(sessionId, "Go on");
      expect(JSON.stringify(model.requests[2]?.body.messages)).toContain("Work as ours.");
    });
  });

  test("are not read again without a change, and nothing is sent", async () => {
    await story({ files: { ".fairlead/agents/ours.md": agentFile } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      for (const word of ["One", "Two", "Three"]) {
        model.reply(word);
        await editor.prompt(sessionId, word);
      }
      expect(editor.updates(sessionId, "available_commands_update")).toHaveLength(1);
      expect(editor.updates(sessionId, "config_option_update")).toEqual([]);
    });
  });

  test("with many problems report the first ones and the number of others", async () => {
    await story({}, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const wrong = Array.from({ length: 8 }, (_, at) => [`wrong${at}`, 1]);
      await repository.write({ "fairlead.json": JSON.stringify(Object.fromEntries(wrong)) });
      model.reply("One.");
      await editor.prompt(sessionId, "Go");
      const notice = thoughtText(editor.updates(sessionId));
      expect(notice.match(/wrong\d: unknown setting/g)).toHaveLength(5);
      expect(notice).toContain("And 3 more problems of the configuration: /reload lists them.");
    });
  });

  test("the default agent replaces an agent that was removed", async () => {
    const files = { ".fairlead/agents/ours.md": agentFile };
    await story({ files }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "ours");
      await rm(join(repository.path, ".fairlead/agents/ours.md"));
      model.reply("As build.");
      await editor.prompt(sessionId, "Go");
      expect(editor.updates(sessionId, "current_mode_update").at(-1)?.currentModeId).toBe("build");
    });
  });

  test("an added rule applies immediately, and a problem is reported once", async () => {
    await story({}, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await repository.write({
        "fairlead.json": JSON.stringify({ permission: { edit: "deny" }, modell: "x" }),
      });
      model.reply("One.");
      await editor.prompt(sessionId, "Go");
      expect(model.requests[0]?.toolNames).not.toContain("edit");
      model.reply("Two.");
      await editor.prompt(sessionId, "Again");
      const thoughts = thoughtText(editor.updates(sessionId));
      expect(thoughts.match(/unknown setting/g)).toHaveLength(1);
    });
  });

  test("new requests of an untrusted project need a question", async () => {
    await story({ permission: "reject_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply("One.");
      await editor.prompt(sessionId, "Go");
      await repository.write({ "fairlead.json": JSON.stringify({ permission: { bash: "allow" } }) });
      model.reply("Two.");
      await editor.prompt(sessionId, "Go");
      model.reply("Three.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
        "Trust this project's configuration?",
      ]);
    });
  });
});

describe("/reload", () => {
  test("reads everything again and lists problems", async () => {
    await story({}, async ({ editor, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "/reload");
      await repository.write({ ".fairlead/commands/undo.md": "Mine." });
      await editor.prompt(sessionId, "/reload");
      const text = agentText(editor.updates(sessionId));
      expect(text).toMatch(/Reloaded: \d+ agents, 0 commands, 3 skills\. No problems\./);
      expect(text).toContain("undo.md: /undo is a built-in command; ignored");
    });
  });
});
