import type { SessionConfigOption } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { plain, type ClientKind } from "../../support/editor/clients.ts";
import { expectFailure } from "../../support/failure.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";

const story = storiesOfOneAgent();

const withSwitches = (): ClientKind => ({
  ...plain(),
  capabilities: { session: { configOptions: { boolean: {} } } },
});

const optionNamed = (options: readonly SessionConfigOption[] | null | undefined, id: string) =>
  options?.find((option) => option.id === id);

/** A second provider next to the scripted one. */
const homeFiles = {
  ".local/share/fairlead/credentials.json": JSON.stringify({ groq: { apiKey: "stored-key" } }),
};

describe("models in the options", () => {
  test("of several providers are grouped by provider, and any of them can be chosen", async () => {
    await story({ homeFiles }, async ({ editor }) => {
      const { sessionId, configOptions } = await editor.newSession();
      const model = optionNamed(configOptions, "model");
      const groups = model?.type === "select" ? model.options : [];
      const names = groups.map((group) => ("group" in group ? group.name : "flat"));
      expect(names).toEqual(expect.arrayContaining(["test", "groq"]));
      expect(names).not.toContain("flat");
      const values = groups
        .flatMap((group) => ("group" in group ? group.options : []))
        .map(({ value }) => value);
      const other = values.find((value) => value.startsWith("groq/")) ?? "";
      const changed = await editor.setConfigOption(sessionId, "model", other);
      expect(optionNamed(changed.configOptions, "model")).toMatchObject({ currentValue: other });
    });
  });

  test("of one provider are a plain list", async () => {
    await story({}, async ({ editor }) => {
      const { configOptions } = await editor.newSession();
      expect(optionNamed(configOptions, "model")).toMatchObject({
        options: [{ value: "test/scripted", name: "Scripted" }],
      });
    });
  });
});

describe("automatic compaction", () => {
  test("is a switch if the client has switches, otherwise a choice of two values", async () => {
    await story({ client: withSwitches() }, async ({ editor }) => {
      const { sessionId, configOptions } = await editor.newSession();
      expect(optionNamed(configOptions, "auto_compact")).toMatchObject({
        type: "boolean",
        currentValue: true,
      });
      const off = await editor.setConfigOption(sessionId, "auto_compact", false);
      expect(optionNamed(off.configOptions, "auto_compact")).toMatchObject({ currentValue: false });
      const failure = await expectFailure(editor.setConfigOption(sessionId, "auto_compact", "perhaps"));
      expect(failure).toMatchObject({ code: -32602 });
    });
    await story({}, async ({ editor }) => {
      const { configOptions } = await editor.newSession();
      const option = optionNamed(configOptions, "auto_compact");
      expect(option).toMatchObject({ type: "select", currentValue: "on" });
    });
  });

  test("stays off after a load if it was disabled, and nothing is summarized", async () => {
    const config = { compaction: { reserved: 0 } };
    await story({ files: { "a.txt": "one\n" }, config }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      await editor.setConfigOption(sessionId, "auto_compact", "off");
      await editor.restart();
      await editor.initialize();
      const loaded = await editor.load(sessionId);
      expect(optionNamed(loaded.configOptions, "auto_compact")).toMatchObject({ currentValue: "off" });
      const full = reply.usage({ promptTokens: 99_500, completionTokens: 10 });
      model.reply(reply.call("read", { filePath: "a.txt" }), full).reply("Read.");
      await editor.prompt(sessionId, "Read it");
      expect(model.requests).toHaveLength(2);
    });
  });
});

test("a mode's description is complete, and absent if there is none", async () => {
  const files = {
    ".fairlead/agents/bare.md": "---\nmode: primary\n---\nWork.",
    ".fairlead/agents/told.md": "---\ndescription: |\n  Two\n  lines\nmode: primary\n---\nWork.",
  };
  await story({ files }, async ({ editor }) => {
    const { modes, configOptions } = await editor.newSession();
    const bare = { name: "Bare" };
    const notice = { name: "Told", description: "Two\nlines" };
    expect(modes?.availableModes.slice(2)).toEqual([
      { id: "bare", ...bare },
      { id: "told", ...notice },
    ]);
    const [mode] = configOptions ?? [];
    expect(mode).toMatchObject({ id: "mode" });
    expect(mode?.type === "select" && mode.options.slice(2)).toEqual([
      { value: "bare", ...bare },
      { value: "told", ...notice },
    ]);
  });
});
