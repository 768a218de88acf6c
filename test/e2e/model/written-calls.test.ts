import { describe, expect, test } from "vitest";
import * as reply from "../../support/model/reply.ts";
import { fairlead } from "../../support/program/cli.ts";
import { startModelServer } from "../../support/model/model-server.ts";
import { type StoryContext, storiesOfOneAgent, type StoryOptions } from "../../support/editor/story.ts";
import { gitRepository, temporaryFolder, writeConfig } from "../../support/temp.ts";
import { agentText, thoughtText, toolCalls } from "../../support/transcript.ts";
import { lookAlikes, writtenCallCases } from "../../unit/model/written-calls/written-calls-cases.ts";

const story = storiesOfOneAgent();
const files = { "src/a.ts": "one\ntwo\nthree\n", "b.ts": "four\n" };
const textModel = { tool_calls: "text", limit: { context: 100_000, output: 8_000 } };

/** Plays a story with a model that writes its calls as text. */
const textStory = (
  play: (context: StoryContext & { sessionId: string }) => Promise<void>,
  options: StoryOptions = {},
) =>
  story({ files, models: { scripted: textModel }, ...options }, async (context) => {
    const { sessionId } = await context.editor.newSession();
    await play({ ...context, sessionId });
  });

const hermes = (tool: string, input: unknown) =>
  `<tool_call>\n${JSON.stringify({ name: tool, arguments: input })}\n</tool_call>`;
const read = hermes("read", { filePath: "src/a.ts" });
/** One case per format. */
const oneOfEach = [...new Map(writtenCallCases.map((one) => [one.format, one])).values()];
/** Sends an answer in chunks of three characters. */
const inPieces = (text: string) => reply.say(...(text.match(/[^]{1,3}/gu) ?? []));

describe("with tool_calls: text", () => {
  test.each(oneOfEach.map((one) => [one.format, one] as const))(
    "a call of %s is run",
    async (_, { text, calls }) => {
      await textStory(async ({ editor, model, sessionId }) => {
        model.reply(inPieces(`Let me read it:\n${text}`)).reply("It has lines.");
        expect((await editor.prompt(sessionId, "Read it")).stopReason).toBe("end_turn");
        expect(toolCalls(editor.updates(sessionId)).map(({ rawInput }) => rawInput)).toEqual(
          calls.map(({ input }) => input),
        );
        expect(toolCalls(editor.updates(sessionId))).toMatchObject(
          calls.map(() => ({ status: "completed" })),
        );
        expect(agentText(editor.updates(sessionId))).toBe(
          `Let me read it:\n${text.startsWith("count") ? "count\n" : ""}It has lines.`,
        );
        const [, answer, results] = model.requests[1]?.messages.slice(1) ?? [];
        expect(answer).toEqual({ role: "assistant", content: `Let me read it:\n${text}` });
        expect(results).toMatchObject({ role: "user" });
        expect(JSON.stringify(results)).toContain("<tool_response name=");
      });
    },
  );

  test("requests contain no tools, and describe them in the system prompt", async () => {
    await textStory(async ({ editor, model, sessionId }) => {
      model.reply(read).reply("Read.");
      await editor.prompt(sessionId, "Read it");
      model.reply("Bye.");
      await editor.prompt(sessionId, "Bye");
      for (const { body, messages } of model.requests) {
        expect(Object.keys(body)).not.toContain("tools");
        expect(Object.keys(body)).not.toContain("tool_choice");
        expect(messages.map(({ role }) => role)).not.toContain("tool");
        expect(JSON.stringify(messages)).not.toContain('tool_calls":');
        expect(String(messages[0]?.content)).toMatch(/end your answer with\n\n<tool_call>[^]*"name":"read"/);
        const roles = messages.slice(1).map(({ role }) => role);
        expect(roles).toEqual(roles.map((__, index) => (index % 2 === 0 ? "user" : "assistant")));
      }
    });
  });

  test("a summary is requested without tools", async () => {
    await textStory(async ({ editor, model, sessionId }) => {
      model.reply(read).reply("Read.");
      await editor.prompt(sessionId, "Read it");
      model.reply("## Goal\nRead the file.");
      await editor.prompt(sessionId, "/compact");
      model.reply("Bye.");
      expect((await editor.prompt(sessionId, "Bye")).stopReason).toBe("end_turn");
      for (const { body } of model.requests) expect(Object.keys(body)).not.toContain("tools");
      expect(JSON.stringify(model.requests.at(-1)?.messages)).toContain("Read the file.");
    });
  });

  test("several calls run in order, and each has its result", async () => {
    await textStory(async ({ editor, model, sessionId }) => {
      model.reply(inPieces(`${read}\n${hermes("read", { filePath: "b.ts" })}<|im_end|>`)).reply("Read.");
      await editor.prompt(sessionId, "Read both");
      expect(model.requests[1]?.userText).toMatch(/1: one[^]*<\/tool_response>\n[^]*1: four/);
    });
  });

  test("a call in the reasoning is run if there is no text", async () => {
    await textStory(async ({ editor, model, sessionId }) => {
      model.reply(reply.think("I read it.\n", read), reply.say("\n")).reply("Read.");
      await editor.prompt(sessionId, "Read it");
      expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ kind: "read", status: "completed" }]);
      expect(thoughtText(editor.updates(sessionId))).toBe("I read it.\n");
    });
  });

  test("permission is asked, and a rejected call is not run", async () => {
    await textStory(
      async ({ editor, model, sessionId, repository }) => {
        model.reply(hermes("bash", { command: "touch made" }));
        await editor.prompt(sessionId, "Make it");
        expect(editor.user.requests).toHaveLength(1);
        expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ kind: "execute", status: "failed" }]);
        expect(await repository.git("status", "--porcelain")).toBe("");
      },
      { config: { permission: { bash: "ask" } }, permission: "reject_once" },
    );
  });

  test("a nearly correct call is repaired like others", async () => {
    await textStory(async ({ editor, model, sessionId }) => {
      model
        .reply(
          '<tool_call>\n{"name": "read_file", "arguments": {"path": "src/a.ts", "limit": "1",}}\n</tool_call>',
        )
        .reply("Read.");
      await editor.prompt(sessionId, "Read it");
      expect(model.requests[1]?.userText).toMatch(/1: one[^]*filePath \(you sent path\)/);
    });
  });

  test("a repeated call is a loop", async () => {
    await textStory(
      async ({ editor, model, sessionId }) => {
        for (let step = 0; step < 3; step++) model.reply(read);
        model.reply("I stop.");
        await editor.prompt(sessionId, "Read it");
        expect(model.requests.at(-1)?.userText).toContain("the same calls three times");
      },
      { config: { permission: { doom_loop: "deny" } } },
    );
  });

  test("a call that is cut off does not run, and the model is informed", async () => {
    await textStory(
      async ({ editor, model, sessionId, repository }) => {
        model
          .reply(
            reply.say('I do it.\n<tool_call>\n{"name": "bash", "arguments": {"command": "touch ma'),
            reply.finish("length"),
          )
          .reply("It was cut.");
        await editor.prompt(sessionId, "Make it");
        expect(await repository.git("status", "--porcelain")).toBe("");
        expect(model.requests[1]?.userText).toContain("The arguments were cut off");
        expect(agentText(editor.updates(sessionId))).toBe("I do it.\nIt was cut.");
      },
      { config: { permission: "allow" } },
    );
  });

  test("a possible example does not run, and the model learns how to call", async () => {
    await textStory(async ({ editor, model, sessionId }) => {
      const unsure = `Done so far.\n\n\`\`\`json\n{"name": "read", "arguments": {"filePath": "b.ts"}}\n\`\`\``;
      model.reply(unsure).reply(read).reply("Read.");
      await editor.prompt(sessionId, "Read it");
      expect(model.requests[1]?.userText).toMatch(/it was not run because it may be an example/);
      expect(toolCalls(editor.updates(sessionId))).toHaveLength(1);
    });
  });

  test("a text that resembles a call is an answer", async () => {
    await textStory(async ({ editor, model, sessionId }) => {
      for (const text of lookAlikes.filter((one) => one.trim() !== "")) {
        model.reply(inPieces(text));
        await editor.prompt(sessionId, "Say it");
      }
      expect(toolCalls(editor.updates(sessionId))).toEqual([]);
      expect(model.requests).toHaveLength(lookAlikes.length - 1);
    });
  });
});

test("without the setting, no call as text is run", async () => {
  await story({ files }, async ({ editor, model }) => {
    for (const { text } of oneOfEach) {
      const { sessionId } = await editor.newSession();
      model.reply(inPieces(text)).reply("I cannot.");
      await editor.prompt(sessionId, "Read it");
      expect(toolCalls(editor.updates(sessionId))).toEqual([]);
      expect(model.requests.at(-1)?.userText).toContain(
        "You wrote a call of `read` as text; it was not run.",
      );
    }
  });
});

describe("fairlead run", () => {
  async function run(provider: Record<string, unknown>, answers: readonly string[], permission = {}) {
    await using home = await temporaryFolder({}, "fairlead-home-");
    await using repository = await gitRepository(files);
    const model = await startModelServer();
    try {
      await writeConfig(home.path, model.url, {
        permission,
        provider: { test: { options: { baseURL: model.url, apiKey: "test-key" }, ...provider } },
      });
      for (const answer of answers) model.reply(answer);
      const result = await fairlead(home.path, ["run", "--all", "Read it"], { cwd: repository.path });
      model.assertClean();
      return { ...result, requests: model.requests };
    } finally {
      await model.close();
    }
  }
  const models = { scripted: { limit: { context: 100_000, output: 8_000 } } };

  test("runs calls as text if configured, and prints only the text", async () => {
    const { exitCode, stdout, requests } = await run({ tool_calls: "text", models }, [
      `I read it.\n${read}`,
      "It has three lines.",
    ]);
    expect([exitCode, stdout]).toEqual([0, "I read it.\nIt has three lines."]);
    expect(requests[1]?.userText).toContain("1: one");
  });

  test("runs a call of each format", async () => {
    const answers = oneOfEach.map(({ text }, index) => `Step ${index}.\nLet me read it:\n${text}`);
    const { exitCode, stdout, requests } = await run({ tool_calls: "text", models }, [...answers, "Done."], {
      doom_loop: "allow",
    });
    expect(exitCode).toBe(0);
    expect(requests).toHaveLength(answers.length + 1);
    for (const { userText } of requests.slice(1)) expect(userText).toMatch(/: one|: three/);
    const shown = stdout.split("\n").filter((line) => line !== "" && line !== "count");
    expect(shown).toEqual([...answers.flatMap((_, index) => [`Step ${index}.`, "Let me read it:"]), "Done."]);
  });

  test("fails without the setting, and names it", async () => {
    const { exitCode, stderr, requests } = await run({ models }, [read, read, read]);
    expect(exitCode).toBe(5);
    expect(stderr).toMatch(
      /--tool-call-parser hermes, SGLang[^]*set "tool_calls": "text" under provider\.test/,
    );
    expect(JSON.stringify(requests.map(({ messages }) => messages))).not.toContain("1: one");
  });
});
