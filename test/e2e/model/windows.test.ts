import { describe, expect, test } from "vitest";
import type { Editor } from "../../support/editor/editor.ts";
import type { ModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { story as oneStory, type StoryContext, type StoryOptions } from "../../support/editor/story.ts";
import { thoughtText } from "../../support/transcript.ts";

/** Plays a story with a provider whose model has no configured window. */
async function unlimitedStory(
  play: (storyContext: StoryContext) => Promise<void>,
  provider = "test",
  options: StoryOptions = {},
): Promise<void> {
  await oneStory({ ...options, initialize: false }, async (storyContext) => {
    const options = { baseURL: storyContext.model.url, apiKey: "test-key" };
    const config = {
      model: `${provider}/scripted`,
      provider: { [provider]: { options, models: { scripted: {} } } },
    };
    await storyContext.home.write({ ".config/fairlead/fairlead.json": JSON.stringify(config) });
    await storyContext.editor.initialize();
    await play(storyContext);
  });
}

const sizes = (editor: Editor, sessionId: string) =>
  editor.updates(sessionId, "usage_update").map(({ size }) => size);

/** Says how many tokens were read. */
const counted = (promptTokens: number) => reply.usage({ promptTokens, completionTokens: 5 });

describe("a local server without a configured window", () => {
  const servers: [string, string, (model: ModelServer) => unknown][] = [
    [
      "llama.cpp",
      "llamacpp",
      (model) => model.page("/props?model=scripted", { default_generation_settings: { n_ctx: 65_536 } }),
    ],
    [
      "Ollama",
      "ollama",
      (model) => model.page("/api/ps", { models: [{ name: "scripted:latest", context_length: 65_536 }] }),
    ],
    [
      "Ollama with a parameter",
      "ollama",
      (model) => model.page("/api/show", { parameters: "stop x\nnum_ctx 65536" }),
    ],
    [
      "LM Studio",
      "lmstudio",
      (model) =>
        model.page("/api/v0/models", {
          data: [{ id: "scripted", loaded_context_length: 65_536, max_context_length: 131_072 }],
        }),
    ],
    [
      "vLLM",
      "vllm",
      (model) => model.page("/v1/models", { data: [{ id: "scripted", max_model_len: 65_536 }] }),
    ],
    [
      "an unknown server",
      "test",
      (model) =>
        model.page("/v1/models", {
          data: [{ id: "scripted", meta: { n_ctx: 65_536, n_ctx_train: 131_072 } }],
        }),
    ],
  ];
  test.each(servers)("reports its window at the first prompt: %s", async (_, provider, prepare) => {
    await unlimitedStory(async ({ editor, model }) => {
      prepare(model);
      const { sessionId } = await editor.newSession();
      expect(model.asked).toEqual([]);
      model.reply("Hello.").reply("Again.");
      await editor.prompt(sessionId, "Hi");
      expect(sizes(editor, sessionId).at(-1)).toBe(65_536);
      const { length } = model.asked;
      await editor.prompt(sessionId, "Hi again");
      expect(model.asked).toHaveLength(length);
    }, provider);
  });

  test("reports its window again once the model is loaded, a limited number of times", async () => {
    await unlimitedStory(async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.replyWith(() => {
        model.page("/api/ps", { models: [{ name: "scripted", context_length: 65_536 }] });
        return "Hello.";
      });
      model.reply("Again.");
      await editor.prompt(sessionId, "Hi");
      await editor.prompt(sessionId, "Hi again");
      expect(sizes(editor, sessionId).at(-1)).toBe(65_536);
    }, "ollama");
    await unlimitedStory(async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.otherwise("Hello.");
      for (let prompt = 1; prompt <= 5; prompt++) await editor.prompt(sessionId, "Hi");
      expect(model.asked.filter((path) => path === "GET /api/ps")).toHaveLength(3);
    }, "ollama");
  });
});

test("is not asked for a configured window", async () => {
  await oneStory({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply("Hello.");
    await editor.prompt(sessionId, "Hi");
    expect(model.asked).toEqual([]);
    expect(sizes(editor, sessionId).at(-1)).toBe(100_000);
  });
});

describe("a server that truncates prompts", () => {
  const long = "All of these words have to be read by the model. ".repeat(1_500);

  test("is detected by its token counts, twice in a row", async () => {
    await oneStory({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply("One.", counted(9_000)).reply("Two.", counted(9_000));
      await editor.prompt(sessionId, long);
      expect(thoughtText(editor.updates(sessionId))).not.toContain("silently truncates the prompt");
      await editor.prompt(sessionId, "Go on");
      const replyText = thoughtText(editor.updates(sessionId));
      expect(replyText).toMatch(
        /silently truncates the prompt at about 9000 tokens.*OLLAMA_CONTEXT_LENGTH or num_ctx.*Context Length/,
      );
      expect(sizes(editor, sessionId).at(-1)).toBe(9_000);
    });
  });

  test("is asked for its window size", async () => {
    await oneStory({}, async ({ editor, model }) => {
      model.page("/api/ps", { models: [{ name: "scripted", context_length: 16_384 }] });
      const { sessionId } = await editor.newSession();
      model.reply("One.", counted(8_200)).reply("Two.", counted(8_200));
      await editor.prompt(sessionId, long);
      await editor.prompt(sessionId, "Go on");
      expect(thoughtText(editor.updates(sessionId))).toContain(
        "silently truncates the prompt at about 16384 tokens",
      );
    });
  });

  test.each([
    ["counts all low", [14_000, 24_000]],
    ["leaves the cached part out of its count", [22_000, 300, 400]],
    ["counts low once", [9_000, 40_000, 9_000]],
    ["counts nothing", [0, 0]],
  ])("is not suspected if it %s", async (_, counts) => {
    await oneStory({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      for (const count of counts) {
        model.reply("Yes.", counted(count));
        await editor.prompt(sessionId, long);
      }
      expect(thoughtText(editor.updates(sessionId))).not.toContain("silently truncates the prompt");
    });
  });
});

test("a window named in a refusal replaces a larger one, with a notice", async () => {
  await oneStory({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    const words = "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens.";
    model.reply("Hello.").reply("Hello again.");
    await editor.prompt(sessionId, "Hi");
    await editor.prompt(sessionId, "Hi again");
    model.reply(reply.failure(400, words)).reply("## Goal\nGreet").reply("And again.");
    await editor.prompt(sessionId, "And again");
    expect(thoughtText(editor.updates(sessionId))).toMatch(
      /The server reports a context of 65536 tokens for Scripted; 100000 were configured or listed\..*set "limit": \{ "context": 65536 \}/,
    );
    expect(sizes(editor, sessionId).at(-1)).toBe(65_536);
  });
});

test("shows a refusal of a one-line conversation at once, without a paid summary", async () => {
  await oneStory({}, async ({ editor, model }) => {
    const { sessionId } = await editor.newSession();
    model.reply(reply.failure(400, "This model's maximum context length is 8192 tokens."));
    await expect(editor.prompt(sessionId, "Hi")).rejects.toThrow(
      /does not fit into the context of Scripted.*instructions and tools take/,
    );
    expect(model.requests).toHaveLength(1);
    expect(thoughtText(editor.updates(sessionId))).toContain(
      "a context of 8192 tokens for Scripted; 100000 were configured",
    );
  });
});
