import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { SessionConfigOption } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { fairlead } from "../../support/program/cli.ts";
import { expectFailure } from "../../support/failure.ts";
import { toList, toObject } from "../../support/json.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent, type StoryContext } from "../../support/editor/story.ts";
import { agentText, thoughtText } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

type Options = readonly SessionConfigOption[] | null | undefined;

/** Returns an option's current value and all its values; undefined if it is not offered. */
function shown(options: Options, id: string): [unknown, unknown[]] | undefined {
  const option = options?.find((one) => one.id === id);
  if (option?.type !== "select") return undefined;
  return [option.currentValue, option.options.map((choice) => ("value" in choice ? choice.value : choice))];
}

const limit = { context: 50_000, output: 8_000 };
const thinker = {
  limit,
  tool_call: true,
  reasoning: true,
  variants: {
    low: { reasoningEffort: "low" },
    deep: { reasoningEffort: "high", seed: 7 },
    off: { disabled: true },
  },
};

/** Plays a story with models that think and one that does not, all answered by the scripted server. */
async function withModels(
  more: Record<string, unknown>,
  play: (
    storyContext: StoryContext,
    configure: (changes: Record<string, unknown>) => Promise<void>,
  ) => Promise<void>,
): Promise<void> {
  await story({ initialize: false }, async (storyContext) => {
    const options = { baseURL: storyContext.model.url, apiKey: "test-key" };
    const models = { thinker, other: { limit, variants: { low: {}, high: {} } }, plain: { limit } };
    const config = { model: "test/thinker", provider: { test: { options, models } }, ...more };
    const configure = (changes: Record<string, unknown>) =>
      storyContext.home.write({
        ".config/fairlead/fairlead.json": JSON.stringify({ ...config, ...changes }),
      });
    await configure({});
    await storyContext.editor.initialize();
    await play(storyContext, configure);
  });
}

const bodyOf = ({ model }: StoryContext, number: number) => model.requests[number - 1]?.body;

describe("the effort of a model", () => {
  test("is an option of the model, applies to the next message, and stays in the session", async () => {
    await withModels({}, async (storyContext) => {
      const { editor, model } = storyContext;
      const { sessionId, configOptions } = await editor.newSession();
      expect(configOptions?.find(({ id }) => id === "thought_level")?.category).toBe("thought_level");
      expect(shown(configOptions, "thought_level")).toEqual(["default", ["default", "low", "deep"]]);
      model.otherwise("Fine.");
      await editor.prompt(sessionId, "One");
      const deep = await editor.setConfigOption(sessionId, "thought_level", "deep");
      expect(shown(deep.configOptions, "thought_level")?.[0]).toBe("deep");
      await editor.prompt(sessionId, "Two");
      expect(bodyOf(storyContext, 1)).not.toHaveProperty("reasoning_effort");
      expect(bodyOf(storyContext, 2)).toMatchObject({ reasoning_effort: "high", seed: 7 });

      const other = await editor.setConfigOption(sessionId, "model", "test/other");
      expect(shown(other.configOptions, "thought_level")).toEqual(["default", ["default", "low", "high"]]);
      const plain = await editor.setConfigOption(sessionId, "model", "test/plain");
      expect(shown(plain.configOptions, "thought_level")).toBeUndefined();
      const refused = expectFailure(editor.setConfigOption(sessionId, "thought_level", "low"));
      expect(await refused).toMatchObject({ code: -32602 });
      await editor.prompt(sessionId, "Three");
      expect(bodyOf(storyContext, 3)).not.toHaveProperty("reasoning_effort");

      const back = await editor.setConfigOption(sessionId, "model", "test/thinker");
      expect(shown(back.configOptions, "thought_level")?.[0]).toBe("deep");
      await editor.restart();
      await editor.initialize();
      expect((await editor.load(sessionId)).configOptions).toEqual(back.configOptions);
      const usual = await editor.setConfigOption(sessionId, "thought_level", "default");
      expect(shown(usual.configOptions, "thought_level")?.[0]).toBe("default");
    });
  });

  test("includes the efforts that a gateway lists; another model uses the nearest", async () => {
    await story({ initialize: false }, async (storyContext) => {
      const { editor, model } = storyContext;
      const models = {
        "gpt-5.1-ours": { id: "gpt-5.1" },
        "gpt-5": {},
        "anthropic/claude-opus-5.5": {},
        "gpt-4.1": {},
      };
      const provider = { work: { options: { baseURL: model.url, apiKey: "test-key" }, models } };
      const config = { model: "work/anthropic/claude-opus-5.5", provider };
      await storyContext.home.write({ ".config/fairlead/fairlead.json": JSON.stringify(config) });
      await editor.initialize();
      const { sessionId, configOptions } = await editor.newSession();
      const claude = ["low", "medium", "high", "xhigh", "max"];
      expect(shown(configOptions, "thought_level")).toEqual(["default", ["default", ...claude]]);
      await editor.setConfigOption(sessionId, "thought_level", "max");
      const choose = async (name: string) =>
        shown(
          (await editor.setConfigOption(sessionId, "model", `work/${name}`)).configOptions,
          "thought_level",
        );
      expect(await choose("gpt-5")).toEqual(["high", ["default", "minimal", "low", "medium", "high"]]);
      expect(await choose("gpt-5.1-ours")).toEqual(["high", ["default", "none", "low", "medium", "high"]]);
      expect(await choose("gpt-4.1")).toBeUndefined();
      expect(await choose("anthropic/claude-opus-5.5")).toEqual(["max", ["default", ...claude]]);
      expect(
        await expectFailure(editor.setConfigOption(sessionId, "thought_level", "minimal")),
      ).toMatchObject({
        message: expect.stringContaining("Values: default, low, medium, high, xhigh, max."),
      });
      await choose("gpt-5");
      model.reply("Fine.");
      await editor.prompt(sessionId, "Think");
      expect(bodyOf(storyContext, 1)).toMatchObject({ model: "gpt-5", reasoning_effort: "high" });
    });
  });

  test("is set by a command for its message, with a notice if the model lacks it", async () => {
    const command = {
      deeply: { template: "Think of $ARGUMENTS", variant: "deep" },
      odd: { template: "Think of $ARGUMENTS", variant: "xhigh" },
    };
    await withModels({ command }, async (storyContext) => {
      const { editor, model } = storyContext;
      const { sessionId } = await editor.newSession();
      model.otherwise("Fine.");
      await editor.prompt(sessionId, "/deeply it");
      await editor.prompt(sessionId, "/odd it");
      expect(bodyOf(storyContext, 1)).toMatchObject({ reasoning_effort: "high", seed: 7 });
      expect(bodyOf(storyContext, 2)).not.toHaveProperty("reasoning_effort");
      expect(JSON.stringify(editor.updates(sessionId, "agent_thought_chunk"))).toContain(
        String.raw`/odd asks for the effort \"xhigh\", but test/thinker has low, deep;`,
      );
    });
  });

  test("is the closest to the agent's effort, with one notice if the model lacks it", async () => {
    await withModels({ agent: { build: { variant: "medium" } } }, async (storyContext) => {
      const { editor, model } = storyContext;
      model.otherwise("Fine.");
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "Build");
      await editor.prompt(sessionId, "Build more");
      expect(bodyOf(storyContext, 2)).toMatchObject({ reasoning_effort: "low" });
      const notices = JSON.stringify(editor.updates(sessionId, "agent_thought_chunk"));
      expect(notices.split("The agent build asks for").slice(1)).toEqual([
        expect.stringContaining(
          String.raw`the effort \"medium\", but test/thinker has low, deep; low is used.`,
        ),
      ]);
    });
  });

  test("comes from the agent or the model's name, unless the user chooses another", async () => {
    const agent = { build: { variant: "low" }, plan: { model: "test/other:high" } };
    await withModels({ agent }, async (storyContext) => {
      const { editor, model } = storyContext;
      model.otherwise("Fine.");
      const { sessionId, configOptions } = await editor.newSession();
      expect(shown(configOptions, "thought_level")?.[0]).toBe("low");
      await editor.prompt(sessionId, "Build");
      await editor.setMode(sessionId, "plan");
      await editor.prompt(sessionId, "Plan");
      await editor.setConfigOption(sessionId, "thought_level", "low");
      await editor.prompt(sessionId, "Plan less");
      expect([1, 2, 3].map((number) => bodyOf(storyContext, number))).toMatchObject([
        { model: "thinker", reasoning_effort: "low" },
        { model: "other" },
        { model: "other" },
      ]);
    });
  });
});

describe("the choice of a model", () => {
  test("fails if the session's effort is gone, until the user chooses another", async () => {
    await withModels({}, async (storyContext, configure) => {
      const { editor, model } = storyContext;
      const other = {
        options: { baseURL: model.url, apiKey: "k" },
        models: { one: { limit }, two: { limit } },
      };
      await configure({ provider: { other }, model: "other/one" });
      const { sessionId } = await editor.newSession();
      await editor.setConfigOption(sessionId, "model", "other/two");
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      await editor.restart();
      await configure({});
      await editor.initialize();
      const { configOptions } = await editor.load(sessionId);
      expect(shown(configOptions, "model")?.[0]).toBe("none");
      expect(await expectFailure(editor.prompt(sessionId, "Still there?"))).toMatchObject({
        code: -32000,
        message: expect.stringContaining("other/two cannot be used: there is no provider other"),
      });
      await editor.setConfigOption(sessionId, "model", "test/plain");
      model.reply("Yes.");
      await editor.prompt(sessionId, "Still there?");
      expect(model.requests.map(({ body }) => body.model)).toEqual(["two", "plain"]);
    });
  });

  test("fails in a new session if the project's last model is gone", async () => {
    await withModels({ model: undefined }, async (storyContext, configure) => {
      const { editor, model } = storyContext;
      const first = await editor.newSession();
      await editor.setConfigOption(first.sessionId, "model", "test/plain");
      const only = { options: { baseURL: model.url, apiKey: "k" }, models: { single: { limit } } };
      await configure({ model: undefined, provider: { only } });
      const { sessionId } = await editor.newSession();
      expect(await expectFailure(editor.prompt(sessionId, "Hi"))).toMatchObject({
        message: expect.stringContaining("the one last used in this project"),
      });
      expect(model.requests).toEqual([]);
    });
  });

  test("writes no title when the small model is unusable, also not with another model", async () => {
    await withModels({ small_model: "gone/tiny" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("Hello.");
      await editor.prompt(sessionId, "Fix the roof");
      expect(thoughtText(editor.updates(sessionId))).toContain("gone/tiny cannot be used");
      expect(model.titleRequests).toEqual([]);
    });
  });

  test("a wrong key is reported with the provider's message and advice", async () => {
    await withModels({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.failure(401, "Incorrect API key"));
      expect(await expectFailure(editor.prompt(sessionId, "Hi"))).toMatchObject({
        code: -32000,
        message: expect.stringMatching(/refused the key \(401\).*fairlead setup.*Incorrect API key/),
      });
    });
  });
});

describe("models that a server lists", () => {
  test("are requested by command, stored, and offered from then on", async () => {
    await story({ initialize: false }, async ({ editor, model, home, repository }) => {
      const options = { baseURL: model.url, apiKey: "test-key" };
      await home.write({
        ".config/fairlead/fairlead.json": JSON.stringify({ provider: { mine: { options } } }),
      });
      const requested = await fairlead(home.path, ["models", "--discover"], { cwd: repository.path });
      expect(requested).toEqual({
        exitCode: 0,
        stdout: expect.stringMatching(/^mine\/scripted\tscripted\t+known context window$/),
        stderr: expect.stringMatching(/^mine: 1 model\nWithout known context window: mine\/scripted\./),
      });
      const unknown = await fairlead(home.path, ["models", "--discover", "groq"], { cwd: repository.path });
      expect(unknown).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("Groq has no key") });
      await editor.initialize();
      const { sessionId, configOptions } = await editor.newSession();
      expect(shown(configOptions, "model")).toEqual(["mine/scripted", ["mine/scripted"]]);
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
    });
  });

  test("are requested when a session opens, if the server is local and no model is named", async () => {
    await story({ initialize: false }, async ({ editor, model, home, repository }) => {
      await home.write({ ".config/fairlead/fairlead.json": "{}" });
      const env = { OLLAMA_HOST: new URL(model.url).host };
      const run = (...args: string[]) => fairlead(home.path, args, { cwd: repository.path, env });
      const tags = (...names: string[]) =>
        model.page("/api/tags", { models: names.map((name) => ({ name })) });
      tags("one", "two");
      expect(await run("run", "hello")).toMatchObject({
        exitCode: 1,
        stderr: expect.stringMatching(
          /No model is chosen among those of ollama: ollama\/one, ollama\/two\. Choose one/,
        ),
      });
      expect(await run("models")).toMatchObject({
        exitCode: 0,
        stdout: expect.stringContaining("ollama/two"),
      });
      model.reply("Hello.");
      expect(await run("run", "--model", "ollama/two", "hello")).toMatchObject({
        exitCode: 0,
        stdout: "Hello.",
      });
      await editor.initialize();
    });
  });

  test("are offered in the editor from the first session on; a single one is used", async () => {
    await story({ initialize: false }, async ({ editor, model, home }) => {
      const mine = { options: { baseURL: model.url, apiKey: "test-key" } };
      await home.write({ ".config/fairlead/fairlead.json": JSON.stringify({ provider: { mine } }) });
      await editor.initialize();
      const { sessionId, configOptions } = await editor.newSession();
      expect(shown(configOptions, "model")).toEqual(["mine/scripted", ["mine/scripted"]]);
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
    });
  });

  test("are requested in the background if configured, and offered with the next message", async () => {
    await story({ initialize: false }, async ({ editor, model, home }) => {
      const options = { baseURL: model.url, apiKey: "test-key" };
      const mine = { discover: true, options, models: { named: {} } };
      const config = { model: "mine/named", provider: { mine } };
      await home.write({ ".config/fairlead/fairlead.json": JSON.stringify(config) });
      await editor.initialize();
      const { sessionId } = await editor.newSession();
      const stored = join(home.path, ".local", "share", "fairlead", "models");
      await expect.poll(() => readdir(stored).catch(() => []), { timeout: 10_000 }).toHaveLength(1);
      model.reply("Hello.");
      await editor.prompt(sessionId, "Hi");
      const { configOptions } = await editor.waitForKind(sessionId, "config_option_update");
      expect(shown(configOptions, "model")).toEqual(["mine/named", ["mine/scripted", "mine/named"]]);
      expect(model.requests[0]?.body.model).toBe("named");
    });
  });
});

describe("a model that repeats itself", () => {
  const passage = "I will look at the file again, and then I will look at it once more. ";

  test("inside one answer is stopped with an explanation, and the session continues", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.tinyDeltas(100_000, passage)).reply("Better.");
      expect(await expectFailure(editor.prompt(sessionId, "Look"))).toMatchObject({
        message: expect.stringContaining(`repeated the same ${passage.length} characters`),
      });
      expect(agentText(editor.updates(sessionId)).length).toBeLessThan(1_000_000);
      await editor.prompt(sessionId, "In other words");
      expect(agentText(editor.updates(sessionId))).toMatch(/Better\.$/);
    });
  });

  test("in several steps is stopped, even if its calls differ", async () => {
    await story({ files: { "a.txt": "one\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      for (let step = 1; step <= 8; step++)
        model.reply(reply.say(passage.repeat(2)), reply.call("read", { filePath: "a.txt", limit: step }));
      expect(await expectFailure(editor.prompt(sessionId, "Look"))).toMatchObject({
        message: expect.stringContaining("wrote the same text in each of the last steps"),
      });
      expect(model.requests).toHaveLength(8);
    });
  });
});

test("a thought signature is returned with its call, also after a restart", async () => {
  await story({ initialize: false, files: { "a.txt": "one\n" } }, async ({ editor, model, home }) => {
    const options = { baseURL: model.url, apiKey: "test-key" };
    const google = { options, models: { "gemini-3.8-flash": { limit } } };
    const config = { model: "google/gemini-3.8-flash", provider: { google } };
    await home.write({ ".config/fairlead/fairlead.json": JSON.stringify(config) });
    await editor.initialize();
    const { sessionId } = await editor.newSession();
    const signed = {
      id: "",
      type: "function",
      function: { name: "read", arguments: '{"filePath":"a.txt"}' },
      extra_content: { google: { thought_signature: "c2lnbmVk" } },
    };
    model
      .reply(
        reply.chunk({ choices: [{ index: 0, delta: { role: "assistant", tool_calls: [signed] } }] }),
        reply.finish("tool_calls"),
      )
      .reply("One.");
    await editor.prompt(sessionId, "Read");
    await editor.restart();
    await editor.initialize();
    await editor.load(sessionId);
    model.reply("Still one.");
    await editor.prompt(sessionId, "And now?");
    const sent = model.requests
      .slice(1)
      .map(({ messages }) =>
        messages.flatMap(({ tool_calls }) => toList(tool_calls).map((call) => toObject(call).extra_content)),
      );
    const signature = { google: { thought_signature: "c2lnbmVk" } };
    expect(sent).toEqual([[signature], [signature]]);
  });
});

test("sends OpenRouter's reasoning details back unchanged to their own model only", async () => {
  await story({ initialize: false, files: { "a.txt": "one\n" } }, async ({ editor, model, home }) => {
    const options = { baseURL: model.url, apiKey: "test-key" };
    const models = { "google/gemini-3.8-flash": { limit }, "qwen/qwen3-coder": { limit } };
    const config = {
      model: "openrouter/google/gemini-3.8-flash",
      provider: { openrouter: { options, models } },
    };
    await home.write({ ".config/fairlead/fairlead.json": JSON.stringify(config) });
    await editor.initialize();
    const { sessionId } = await editor.newSession();
    const thought = (fields: Record<string, unknown>) =>
      reply.chunk({ choices: [{ index: 0, delta: { reasoning_details: [fields] } }] });
    const sealed = { type: "reasoning.encrypted", data: "c2VhbGVk", id: "call_1", format: "x", index: 1 };
    model
      .reply(
        thought({ type: "reasoning.text", text: "Look ", signature: null, format: "x", index: 0 }),
        thought({ type: "reasoning.text", text: "there.", index: 0 }),
        thought({ type: "reasoning.text", signature: "c2lnbmVk", index: 0 }),
        reply.call("read", { filePath: "a.txt" }, { id: "call_1" }),
        thought(sealed),
      )
      .reply(
        thought({ type: "reasoning.summary", summary: "Once more.", index: 0 }),
        reply.call("read", { filePath: "a.txt" }, { id: "call_2" }),
        reply.end(),
      )
      .reply("One.");
    await editor.prompt(sessionId, "Read");
    await editor.restart();
    await editor.initialize();
    await editor.load(sessionId);
    model.reply("Still one.").reply("One, I see.");
    await editor.prompt(sessionId, "And now?");
    await editor.setConfigOption(sessionId, "model", "openrouter/qwen/qwen3-coder");
    await editor.prompt(sessionId, "And you?");
    const whole = {
      type: "reasoning.text",
      text: "Look there.",
      signature: "c2lnbmVk",
      format: "x",
      index: 0,
    };
    const again = { type: "reasoning.summary", summary: "Once more.", index: 0 };
    const sent = model.requests
      .slice(1)
      .map(({ messages }) =>
        messages.filter(({ tool_calls }) => tool_calls).map((message) => message.reasoning_details),
      );
    // The second answer broke off after its call.
    const both = [[whole, sealed], [again]];
    expect(sent).toEqual([[[whole, sealed]], both, both, [undefined, undefined]]);
  });
});
