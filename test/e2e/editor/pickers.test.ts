import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { SessionConfigOption, SessionUpdate } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { zedLike } from "../../support/editor/clients.ts";
import type { Editor } from "../../support/editor/editor.ts";
import { expectFailure } from "../../support/failure.ts";
import * as reply from "../../support/model/reply.ts";
import { collectUnrequestedMessages } from "../../support/editor/silence.ts";
import { storiesOfOneAgent, type StoryContext } from "../../support/editor/story.ts";
import type { WireEntry } from "../../support/wire/wire-log.ts";
import { toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const kinds = (updates: readonly SessionUpdate[]) => updates.map(({ sessionUpdate }) => sessionUpdate);

function valueOf(options: readonly SessionConfigOption[] | null | undefined, id: string): unknown {
  return options?.find((option) => option.id === id)?.currentValue;
}

function choicesOf(options: readonly SessionConfigOption[] | null | undefined, id: string): unknown[] {
  const option = options?.find((one) => one.id === id);
  return option?.type === "select" ? option.options.map((choice) => "value" in choice && choice.value) : [];
}

/** The agent's messages from an entry on: responses as "answer", updates by their kinds. */
function sentSince(editor: Editor, start: number): string[] {
  return editor.wire.entries.slice(start).flatMap(({ direction, message }: WireEntry) => {
    if (direction === "toAgent" || !message) return [];
    if (message.kind === "response") return ["answer"];
    const update = message.params.update;
    return typeof update === "object" && update && "sessionUpdate" in update
      ? [String(update.sessionUpdate)]
      : [message.method];
  });
}

/** A second model next to the scripted one; the model server answers both. */
function twoModels({ model }: { model: StoryContext["model"] }): Record<string, unknown> {
  const limit = { context: 50_000, output: 8_000 };
  return {
    provider: {
      test: {
        options: { baseURL: model.url, apiKey: "test-key" },
        models: {
          scripted: { name: "Scripted", limit, tool_call: true },
          other: { name: "Other", limit, tool_call: true },
        },
      },
    },
  };
}

/** Plays a story whose project configuration adds to the user's. */
async function withTwoModels(
  more: Record<string, unknown>,
  play: (storyContext: StoryContext) => Promise<void>,
): Promise<void> {
  await story({ initialize: false }, async (storyContext) => {
    const config = { model: "test/scripted", ...twoModels(storyContext), ...more };
    await storyContext.home.write({ ".config/fairlead/fairlead.json": JSON.stringify(config) });
    await storyContext.editor.initialize();
    await play(storyContext);
  });
}

const modelOf = (storyContext: StoryContext, number: number) =>
  storyContext.model.requests[number - 1]?.body.model;

describe("the pickers", () => {
  test("offer the same modes as modes and as an option, and the model", async () => {
    await story({}, async ({ editor }) => {
      const { modes, configOptions } = await editor.newSession();
      expect(modes?.availableModes.map(({ id }) => id)).toEqual(["build", "plan"]);
      expect(choicesOf(configOptions, "mode")).toEqual(["build", "plan"]);
      expect([modes?.currentModeId, valueOf(configOptions, "mode")]).toEqual(["build", "build"]);
      expect(configOptions?.map(({ id, category }) => [id, category]).slice(0, 2)).toEqual([
        ["mode", "mode"],
        ["model", "model"],
      ]);
      expect(valueOf(configOptions, "model")).toBe("test/scripted");
      expect(choicesOf(configOptions, "model")).toEqual(["test/scripted"]);
    });
  });

  test("show the configured agents, but not hidden agents or subagents", async () => {
    const agent = {
      review: { mode: "primary", description: "Reads and judges.", prompt: "Review." },
      helper: { mode: "subagent", description: "Helps.", prompt: "Help." },
      plan: { disable: true },
    };
    await story({ config: { agent } }, async ({ editor }) => {
      const { modes } = await editor.newSession();
      expect(modes?.availableModes).toEqual([
        expect.objectContaining({ id: "build" }),
        { id: "review", name: "Review", description: "Reads and judges." },
      ]);
    });
  });

  test("of a new session are sent after its response, not before", async () => {
    await story({}, async ({ editor }) => {
      const start = editor.wire.entries.length;
      const { sessionId } = await editor.newSession();
      await editor.waitForKind(sessionId, "available_commands_update");
      expect(sentSince(editor, start)).toEqual(["answer", "available_commands_update"]);
    });
  });

  test("follow set_mode: the answer, then the mode, then the options", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      await editor.waitForKind(sessionId, "available_commands_update");
      const start = editor.wire.entries.length;
      await editor.setMode(sessionId, "plan");
      const { configOptions } = await editor.waitForKind(sessionId, "config_option_update");
      expect(sentSince(editor, start)).toEqual(["answer", "current_mode_update", "config_option_update"]);
      expect(valueOf(configOptions, "mode")).toBe("plan");
      await editor.setMode(sessionId, "plan");
      expect(await collectUnrequestedMessages(editor)).toEqual([]);
    });
  });

  test("follow the option mode the same way", async () => {
    await story({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      await editor.waitForKind(sessionId, "available_commands_update");
      const start = editor.wire.entries.length;
      const { configOptions } = await editor.setConfigOption(sessionId, "mode", "plan");
      expect(valueOf(configOptions, "mode")).toBe("plan");
      expect(await editor.waitForKind(sessionId, "current_mode_update")).toMatchObject({
        currentModeId: "plan",
      });
      await editor.waitForKind(sessionId, "config_option_update");
      expect(sentSince(editor, start)).toEqual(["answer", "current_mode_update", "config_option_update"]);
    });
  });

  test("change the model for the next turn and for the project's next session", async () => {
    await withTwoModels({ model: undefined }, async (storyContext) => {
      const { editor, model } = storyContext;
      const { sessionId, configOptions: unset } = await editor.newSession();
      expect(valueOf(unset, "model")).toBe("none");
      expect(choicesOf(unset, "model")).toEqual(["none", "test/scripted", "test/other"]);
      expect(await expectFailure(editor.prompt(sessionId, "Hi"))).toMatchObject({ code: -32000 });
      const { configOptions } = await editor.setConfigOption(sessionId, "model", "test/other");
      expect(valueOf(configOptions, "model")).toBe("test/other");
      expect(choicesOf(configOptions, "model")).toEqual(["test/scripted", "test/other"]);
      const update = await editor.waitForKind(sessionId, "config_option_update");
      expect(update.configOptions).toEqual(configOptions);
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      expect(modelOf(storyContext, 1)).toBe("other");
      expect(valueOf((await editor.newSession()).configOptions, "model")).toBe("test/other");
    });
  });

  test("change the next model of a running turn's session, not the turn's model", async () => {
    await withTwoModels({}, async (storyContext) => {
      const { editor, model } = storyContext;
      const { sessionId } = await editor.newSession();
      const gate = reply.gate();
      model.reply(reply.say("One"), gate).reply("Two");
      const turn = editor.prompt(sessionId, "Hi");
      await gate.reached();
      await editor.setConfigOption(sessionId, "model", "test/other");
      await editor.setMode(sessionId, "plan");
      gate.release();
      await turn;
      await editor.prompt(sessionId, "Again");
      expect([modelOf(storyContext, 1), modelOf(storyContext, 2)]).toEqual(["scripted", "other"]);
    });
  });

  test.each<[string, (editor: Editor, sessionId: string) => Promise<unknown>, string]>([
    ["mode", (editor, id) => editor.setMode(id, "nope"), 'Mode "nope" not found. Modes: build, plan.'],
    ["hidden mode", (editor, id) => editor.setMode(id, "title"), 'Mode "title" not found'],
    ["subagent as a mode", (editor, id) => editor.setMode(id, "explore"), 'Mode "explore" not found'],
    [
      "prototype's name as a mode",
      (editor, id) => editor.setMode(id, "__proto__"),
      'Mode "__proto__" not found',
    ],
    ["option", (editor, id) => editor.setConfigOption(id, "nope", "x"), "mode, model"],
    ["mode as an option", (editor, id) => editor.setConfigOption(id, "mode", "nope"), "build, plan"],
    ["model", (editor, id) => editor.setConfigOption(id, "model", "test/nope"), "test/scripted"],
    ["value that is no text", (editor, id) => editor.setConfigOption(id, "mode", true), "build, plan"],
  ])("reject an unknown %s with -32602 and list the known ones", async (_name, change, words) => {
    await story({}, async ({ editor }) => {
      const { sessionId, configOptions } = await editor.newSession();
      const failure = await expectFailure(change(editor, sessionId));
      expect(failure).toMatchObject({ code: -32602, message: expect.stringContaining(words) });
      expect((await editor.setConfigOption(sessionId, "mode", "build")).configOptions).toEqual(configOptions);
    });
  });

  test("reject changes of an unknown session with -32002", async () => {
    await story({}, async ({ editor }) => {
      expect(await expectFailure(editor.setMode("nope", "plan"))).toMatchObject({ code: -32002 });
      expect(await expectFailure(editor.setConfigOption("nope", "mode", "plan"))).toMatchObject({
        code: -32002,
      });
    });
  });

  test("accept the defaults that an editor sends right after session/new", async () => {
    await story({ client: zedLike() }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const [mode, options] = await Promise.all([
        editor.setMode(sessionId, "plan"),
        editor.setConfigOption(sessionId, "model", "test/scripted"),
      ]);
      expect(mode).toEqual({});
      expect(valueOf(options.configOptions, "mode")).toBe("plan");
      model.reply("Planned.");
      expect(await editor.prompt(sessionId, "Plan it")).toMatchObject({ stopReason: "end_turn" });
    });
  });

  test("agree after a load in another process", async () => {
    await withTwoModels({}, async ({ editor }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      const { configOptions } = await editor.setConfigOption(sessionId, "model", "test/other");
      await editor.restart();
      await editor.initialize();
      const loaded = await editor.load(sessionId);
      expect(loaded.configOptions).toEqual(configOptions);
      expect(loaded.modes?.currentModeId).toBe("plan");
    });
  });
});

describe("the plan mode", () => {
  test("denies every way to change a file, and the model is informed", async () => {
    await story({ files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      model
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply(
          reply.call("edit", { filePath: "a.txt", oldString: "one", newString: "two" }),
          reply.call("write", { filePath: "b.txt", content: "new\n" }),
          reply.call("bash", { command: "echo changed > a.txt" }),
        )
        .reply("I may not.");
      await editor.prompt(sessionId, "Change a.txt");
      expect(await readFile(join(repository.path, "a.txt"), "utf8")).toBe("one\n");
      await expect(readFile(join(repository.path, "b.txt"))).rejects.toThrow("ENOENT");
      expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual([
        "completed",
        "failed",
        "failed",
        "failed",
      ]);
      expect(model.requests[2]?.toolResults).toHaveLength(3);
      expect(kinds(editor.updates(sessionId))).toContain("current_mode_update");
    });
  });

  test("ends when the user chooses build, and then edits run", async () => {
    await story({ files: { "a.txt": "one\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      await editor.setMode(sessionId, "plan");
      model.reply("Planned.");
      await editor.prompt(sessionId, "Plan");
      await editor.setMode(sessionId, "build");
      model.reply(reply.call("write", { filePath: "b.txt", content: "new\n" })).reply("Done.");
      await editor.prompt(sessionId, "Do it");
      expect(await readFile(join(repository.path, "b.txt"), "utf8")).toBe("new\n");
    });
  });
});

describe("an agent with a configured model", () => {
  const agent = { plan: { model: "test/other" } };

  test("uses this model, and the picker shows it", async () => {
    await withTwoModels({ agent }, async (storyContext) => {
      const { editor, model } = storyContext;
      const { sessionId, configOptions } = await editor.newSession();
      expect(valueOf(configOptions, "model")).toBe("test/scripted");
      await editor.setMode(sessionId, "plan");
      const update = await editor.waitForKind(sessionId, "config_option_update");
      expect(valueOf(update.configOptions, "model")).toBe("test/other");
      model.reply("Planned.").reply("Built.");
      await editor.prompt(sessionId, "Plan");
      await editor.setMode(sessionId, "build");
      await editor.prompt(sessionId, "Build");
      expect([modelOf(storyContext, 1), modelOf(storyContext, 2)]).toEqual(["other", "scripted"]);
    });
  });

  test("uses the model that the user chose", async () => {
    await withTwoModels({ agent }, async (storyContext) => {
      const { editor, model } = storyContext;
      const { sessionId } = await editor.newSession();
      await editor.setConfigOption(sessionId, "model", "test/scripted");
      const { configOptions } = await editor.setConfigOption(sessionId, "mode", "plan");
      expect(valueOf(configOptions, "model")).toBe("test/scripted");
      model.reply("Planned.");
      await editor.prompt(sessionId, "Plan");
      expect(modelOf(storyContext, 1)).toBe("scripted");
    });
  });
});
