import type { RequestPermissionRequest } from "@agentclientprotocol/sdk";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { plain, withElicitation, zedLike } from "../../support/editor/clients.ts";
import { draftStoriesOfOneAgent } from "../../support/editor/draft-editor.ts";
import { toObject } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { type StoryContext, storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();
const draftStory = draftStoriesOfOneAgent();

const kinds = [
  ["plain", plain],
  ["with forms", withElicitation],
  ["like Zed", zedLike],
] as const;

describe.each(kinds)("in an editor that is %s", (_, client) => {
  test("plan_exit shows the plan, switches the mode, and the turn continues building", async () => {
    await story({ client: client(), files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      editor.permission = "allow_once";
      model
        .reply(reply.call("write", { filePath: ".fairlead/plans/p.md", content: "# Make it two\n" }))
        .reply(reply.call("plan_exit", {}))
        .reply(reply.call("write", { filePath: "b.txt", content: "two\n" }))
        .reply("Built.");
      const { stopReason } = await editor.prompt(sessionId, "Plan, then build");
      expect(stopReason).toBe("end_turn");
      expect(await readFile(join(repository.path, "b.txt"), "utf8")).toBe("two\n");

      expect(editor.permissionRequests).toHaveLength(1);
      const [request] = editor.permissionRequests;
      expect(request?.toolCall).toMatchObject({
        title: "Leave plan mode and start building?",
        kind: "switch_mode",
      });
      expect(JSON.stringify(request?.toolCall.content?.[0])).toContain(
        "`.fairlead/plans/p.md`\\n\\n# Make it two\\n",
      );
      expect([...new Set(request?.options.map(({ kind }) => kind))]).toEqual(["allow_once", "reject_once"]);
      expect(request?.options[0]?.name).toBe("Build");

      const modes = editor.updates(sessionId, "current_mode_update");
      expect(modes.map(({ currentModeId }) => currentModeId)).toEqual(["plan", "build"]);
      const [change] = editor.updates(sessionId, "config_option_update").slice(-1);
      const mode = change?.configOptions.find(({ id }) => id === "mode");
      expect(toObject(mode).currentValue).toBe("build");

      expect(model.requests[2]?.userText).toContain("The mode changed from plan to build.");
      expect(agentText(editor.updates(sessionId))).toBe("Built.");
    });
  });
});

describe("plan_exit if edits need a question", () => {
  const config = { permission: { edit: "ask" } };
  const choices = ["Build, ask for edits", "Build, accept edits"];
  const write = reply.call("write", { filePath: "b.txt", content: "two\n" });
  const approvals = ({ editor }: StoryContext, sessionId: string) =>
    editor
      .updates(sessionId, "config_option_update")
      .map(({ configOptions }) => toObject(configOptions.find(({ id }) => id === "approval")).currentValue);
  const names = ({ options }: RequestPermissionRequest) => options.map(({ name }) => name);

  test.each(kinds)("accepts edits or asks for them, in an editor that is %s", async (_, client) => {
    await story({ config, client: client(), files: { "a.txt": "one\n" } }, async (context) => {
      const { editor, model, repository } = context;
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      editor.permission = "allow_always";
      model.reply(reply.call("plan_exit", {})).reply(write).reply("Built.");
      await editor.prompt(sessionId, "Plan, then build");
      expect(await readFile(join(repository.path, "b.txt"), "utf8")).toBe("two\n");
      const [asked] = editor.permissionRequests;
      expect(editor.permissionRequests).toHaveLength(1);
      expect(asked && names(asked).slice(0, 2)).toEqual(choices);
      expect(asked?.options.map(({ kind }) => kind)).toEqual(["allow_once", "allow_always", "reject_once"]);
      expect(approvals(context, sessionId).at(-1)).toBe("accept-edits");

      await editor.setMode(sessionId, "plan");
      editor.permission = "allow_once";
      model
        .reply(reply.call("plan_exit", {}))
        .reply(reply.call("edit", { filePath: "b.txt", oldString: "two", newString: "three" }))
        .reply("Built.");
      await editor.prompt(sessionId, "Again");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.kind)).toEqual([
        "switch_mode",
        "switch_mode",
        "edit",
      ]);
      expect(approvals(context, sessionId).at(-1)).toBe("ask");
    });
  });

  test.each([
    ["plain", plain(), "Keep planning"],
    ["with forms", withElicitation(), "Keep planning, and say what to change"],
  ])("keeps planning, in an editor that is %s", async (kind, client, name) => {
    const requested: string[] = [];
    const elicit = ({ message }: { message: string }) => {
      requested.push(message);
      return { action: "accept", content: { reason: "Use two files." } } as const;
    };
    await story(
      { config, client: { ...client, elicit }, permission: "reject_once" },
      async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        await editor.setMode(sessionId, "plan");
        const hasForm = kind === "with forms";
        model.reply(reply.call("plan_exit", {}));
        if (hasForm) model.reply("With two files then.");
        await editor.prompt(sessionId, "Plan");
        expect(editor.permissionRequests.map(names)).toEqual([[...choices, name]]);
        expect(requested).toEqual(hasForm ? ["What should be different in the plan?"] : []);
        expect(model.requests.at(-1)?.toolResults.join()).toContain(hasForm ? "Use two files." : "");
        expect(editor.updates(sessionId, "current_mode_update").at(-1)?.currentModeId).toBe("plan");
      },
    );
  });

  test("offers the same answers in version 2", async () => {
    const permission = () => ({ outcome: "selected", optionId: "allow_always" }) as const;
    await draftStory({ config, permission }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.request("session/new", { cwd: repository.path, mcpServers: [] });
      const mode = { sessionId, configId: "mode", type: "id", value: "plan" };
      await editor.request("session/set_config_option", mode);
      model.reply(reply.call("plan_exit", {})).reply(write).reply("Built.");
      await editor.turn(String(sessionId), "Plan, then build");
      expect(editor.permissionRequests.map(({ options }) => options)).toEqual([
        [
          { optionId: "allow_once", name: "Build, ask for edits", kind: "allow_once" },
          { optionId: "allow_always", name: "Build, accept edits", kind: "allow_always" },
          { optionId: "reject_once", name: "Keep planning", kind: "reject_once" },
        ],
      ]);
      expect(await readFile(join(repository.path, "b.txt"), "utf8")).toBe("two\n");
    });
  });
});

describe("plan_exit", () => {
  test("that is rejected leaves plan mode on, and the model is informed", async () => {
    await story({ permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      model.reply(reply.call("plan_exit", {}));
      expect((await editor.prompt(sessionId, "Plan")).stopReason).toBe("end_turn");
      expect(toolCalls(editor.updates(sessionId))[0]?.status).toBe("failed");
      model.reply(reply.call("write", { filePath: "b.txt", content: "x" }));
      model.reply("Still planning.");
      await editor.prompt(sessionId, "Not yet");
      expect(JSON.stringify(model.requests[1]?.messages)).toContain("The user rejected this call");
      expect(model.requests[1]?.userText).toContain("Plan mode is on.");
      expect(model.requests[2]?.toolResults).toEqual([
        expect.stringMatching(/^Not run\. Plan mode changes nothing but plans/),
      ]);
    });
  });

  test("asks although everything is approved, and shows no plan if none was written", async () => {
    const config = { permission: "allow" };
    const files = { ".fairlead/plans/old.md": "# Old\n" };
    await story({ config, files, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      await editor.setConfigOption(sessionId, "approval", "auto");
      model.reply(reply.call("plan_exit", {})).reply("Building.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toHaveLength(1);
      expect(JSON.stringify(editor.permissionRequests)).not.toContain("# Old");
    });
  });

  test("does not apply the new mode's rules to other calls of its step", async () => {
    await story({ permission: "allow_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      model
        .reply(
          reply.together(
            reply.callScript("plan_exit", {}),
            reply.callScript("write", { filePath: "b.txt", content: "x" }),
          ),
        )
        .reply("Now.");
      await editor.prompt(sessionId, "Go");
      const statuses = toolCalls(editor.updates(sessionId)).map(({ status }) => status);
      expect(statuses).toEqual(["completed", "failed"]);
      expect(await repository.git("status", "--porcelain")).toBe("");
    });
  });
});

describe("a plan tool in the wrong mode", () => {
  test.each([
    ["build", "plan_exit", /^Plan mode is not on/],
    ["plan", "plan_enter", /^Plan mode is on already/],
  ])("in %s, %s returns advice and asks nobody", async (mode, tool, words) => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, mode);
      model.reply(reply.call(tool, {})).reply("Well.");
      await editor.prompt(sessionId, "Go");
      expect(editor.permissionRequests).toEqual([]);
      expect(model.requests[1]?.toolResults).toEqual([expect.stringMatching(words)]);
    });
  });
});

describe("plan_enter", () => {
  test("plan_enter turns on plan mode for the turn and session; a load shows it", async () => {
    await story({ permission: "allow_once" }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("plan_enter", {}))
        .reply(reply.call("write", { filePath: "b.txt", content: "x" }))
        .reply("I only plan.");
      await editor.prompt(sessionId, "A large change");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual([
        "Switch to plan mode?",
      ]);
      expect(model.requests[1]?.userText).toContain("Plan mode is on.");
      expect(model.requests[2]?.toolResults).toEqual([
        expect.stringMatching(/^Not run\. Plan mode changes nothing but plans/),
      ]);
      expect(await repository.git("status", "--porcelain")).toBe("");
      const live = agentText(editor.updates(sessionId));
      await editor.restart();
      await editor.initialize();
      const loaded = await editor.load(sessionId);
      expect(loaded.modes?.currentModeId).toBe("plan");
      expect(agentText(editor.updates(sessionId))).toBe(live);
      const replyText = editor.updates(sessionId, "user_message_chunk").map(({ content }) => content);
      expect(replyText).toEqual([{ type: "text", text: "A large change" }]);
    });
  });
});
