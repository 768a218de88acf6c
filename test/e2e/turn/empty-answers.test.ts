import { RequestError } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import type { Editor } from "../../support/editor/editor.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent } from "../../support/editor/story.ts";
import { agentText, thoughtText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const retry = { delay_ms: 10 };
/** One call, two repetitions of it and one with a reminder. */
const callsUntilFailure = 4;
const emptyReminder = "Your last answer was empty. Go on with the work or say that it is done.";

const emptyAnswers: [string, reply.Step[]][] = [
  ["nothing", [reply.finish("stop")]],
  ["a thought alone", reply.think("Hm.")],
  ["white space alone", reply.say(" \n")],
  ["zero-width characters alone", reply.say("\u200b\u2060\ufeff")],
  ["tool_calls without a call", [reply.finish("tool_calls")]],
  ["[DONE] alone", [reply.headers(), reply.end({ done: true })]],
  ["no body", [reply.headers(), reply.end()]],
];

async function failureOf(editor: Editor, sessionId: string, text = "Go on"): Promise<RequestError> {
  const thrown: unknown = await editor.prompt(sessionId, text).catch((error: unknown) => error);
  if (!(thrown instanceof RequestError)) throw new Error(`The turn did not fail: ${JSON.stringify(thrown)}`);
  return thrown;
}

describe("an empty answer", () => {
  test.each(emptyAnswers)("of %s is requested again, unchanged", async (_, steps) => {
    await story({ config: { retry } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(steps).reply(steps).reply("Here.");
      expect((await editor.prompt(sessionId, "Go on")).stopReason).toBe("end_turn");
      expect(agentText(editor.updates(sessionId))).toMatch(/Here\.$/);
      const waits = toolCalls(editor.updates(sessionId)).map(({ title, status }) => `${title} ${status}`);
      expect(waits.at(-1)).toMatch(/^Wait for the provider \(attempt 2 of [35]\) completed$/);
      const [first, ...others] = model.requests.map(({ messages }) => messages);
      expect(others).toEqual([first, first]);
    });
  });

  test("is followed by a reminder if repeating does not help", async () => {
    await story({ config: { retry } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      for (let call = 1; call < callsUntilFailure; call++) model.reply(reply.finish("stop"));
      model.reply("It is done.");
      expect((await editor.prompt(sessionId, "Go on")).stopReason).toBe("end_turn");
      expect(model.requests).toHaveLength(callsUntilFailure);
      expect(model.requests[2]?.userText).not.toContain(emptyReminder);
      expect(model.requests[3]?.userText).toContain(emptyReminder);
      expect(agentText(editor.updates(sessionId))).toBe("It is done.");
    });
  });

  test.each(emptyAnswers.slice(0, 5))("of %s finally fails with an explanation", async (_, steps) => {
    await story({ config: { retry } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      for (let call = 1; call <= callsUntilFailure; call++) model.reply(steps);
      const { message, data } = await failureOf(editor, sessionId);
      expect(message).toMatch(/gave no answer.*Send the prompt again, or choose another model/);
      expect(data).toMatchObject({ kind: "invalid_response", retryable: true });
      model.reply("Again.");
      expect((await editor.prompt(sessionId, "Once more")).stopReason).toBe("end_turn");
    });
  });

  test("raises a configured temperature, and sets none otherwise", async () => {
    const temperatures = async (agent: Record<string, unknown>) => {
      const seen: unknown[] = [];
      await story({ config: { retry, agent: { build: agent } } }, async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        model.reply(reply.finish("stop")).reply(reply.finish("stop")).reply("Here.");
        await editor.prompt(sessionId, "Go on");
        seen.push(...model.requests.map(({ body }) => body.temperature));
      });
      return seen;
    };
    expect(await temperatures({ temperature: 0.2 })).toEqual([0.2, 0.3, 0.4]);
    expect(await temperatures({})).toEqual([undefined, undefined, undefined]);
  });

  test("after tool calls that changed something ends the turn with a notice", async () => {
    const config = { retry, permission: "allow" };
    await story({ config }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("write", { filePath: "made.txt", content: "made\n" }));
      for (let call = 1; call <= callsUntilFailure; call++) model.reply(reply.finish("stop"));
      expect((await editor.prompt(sessionId, "Make it")).stopReason).toBe("end_turn");
      expect(model.requests[4]?.userText).toContain(emptyReminder);
      expect(thoughtText(editor.updates(sessionId))).toContain("ended its work without a final answer");
      expect(await repository.git("status", "--porcelain")).toBe("?? made.txt");
    });
  });

  test("after tool calls that only read fails the turn", async () => {
    await story({ config: { retry }, files: { "a.txt": "one\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("read", { filePath: "a.txt" }));
      for (let call = 1; call <= callsUntilFailure; call++) model.reply(reply.finish("stop"));
      expect((await failureOf(editor, sessionId)).message).toContain("gave no answer");
    });
  });

  test("may occur again after the model continued", async () => {
    await story({ config: { retry }, files: { "a.txt": "one\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const silence = () => {
        for (let call = 1; call < callsUntilFailure; call++) model.reply(reply.finish("stop"));
      };
      silence();
      model.reply(reply.call("read", { filePath: "a.txt" }));
      silence();
      model.reply("Read.");
      expect((await editor.prompt(sessionId, "Read it")).stopReason).toBe("end_turn");
      expect(agentText(editor.updates(sessionId))).toBe("Read.");
    });
  });

  test("of a task fails the task with an explanation", async () => {
    await story({ config: { retry } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const task = { description: "Look", prompt: "Look it up", subagent_type: "general" };
      model.reply(reply.call("task", task));
      for (let call = 1; call <= callsUntilFailure; call++) model.reply(reply.think("Hm."));
      model.reply("It failed.");
      await editor.prompt(sessionId, "Have it looked up");
      expect(model.requests.at(-1)?.toolResults).toEqual([
        expect.stringMatching(/^The task failed: .*gave no answer/),
      ]);
    });
  });

  test("is not replayed, and leaves one answer", async () => {
    await story({ config: { retry } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      for (let call = 1; call < callsUntilFailure; call++) model.reply(reply.say(" "));
      model.reply("It is done.");
      await editor.prompt(sessionId, "Go on");
      model.reply("Sure.");
      await editor.prompt(sessionId, "Sure?");
      const replyText = model.requests.at(-1)?.messages.filter(({ role }) => role === "assistant");
      expect(replyText?.map(({ content }) => content)).toEqual(["It is done."]);
    });
  });
});

describe("a call that is written as text", () => {
  const leaked = '<tool_call>\n{"name": "read", "arguments": {"filePath": "a.txt"}}\n</tool_call>';
  const files = { "a.txt": "one\n" };

  test("is not run, and the model is reminded to call the tool", async () => {
    await story({ files }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(`Let me read it.\n${leaked}`)
        .reply(reply.call("read", { filePath: "a.txt" }))
        .reply("Read.");
      expect((await editor.prompt(sessionId, "Read it")).stopReason).toBe("end_turn");
      expect(model.requests[1]?.userText).toContain(
        "You wrote a call of `read` as text; it was not run. Call the tool itself.",
      );
      expect(toolCalls(editor.updates(sessionId))).toHaveLength(1);
    });
  });

  test("counts in reasoning if there is no other text", async () => {
    await story({ config: { retry }, files }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.think(`I read it.\n${leaked}`)).reply("Read.");
      await editor.prompt(sessionId, "Read it");
      expect(model.requests[1]?.userText).toContain("You wrote a call of `read` as text");
      model.reply(reply.think(`I read it.\n${leaked}`), reply.say("It has one line."));
      await editor.prompt(sessionId, "Read it again");
      expect(model.requests).toHaveLength(3);
    });
  });

  test("fails if it repeats, and names the server's options", async () => {
    await story({ files }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(leaked).reply(leaked).reply(leaked);
      const { message } = await failureOf(editor, sessionId);
      expect(message).toMatch(
        /--enable-auto-tool-choice --tool-call-parser hermes, SGLang .* qwen, llama\.cpp with --jinja/,
      );
      expect(toolCalls(editor.updates(sessionId))).toEqual([]);
    });
  });

  test("is an answer if it is an example", async () => {
    await story({ files }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(`Hermes models write calls in this format:\n${leaked}`);
      await editor.prompt(sessionId, "How does Hermes call?");
      expect(model.requests).toHaveLength(1);
    });
  });
});

describe("an announcement without a call", () => {
  const todos = [{ content: "Read it", status: "in_progress", priority: "high" }];

  test.each([
    "Let me read the file first:",
    "Now I'll fix the test",
    "Reading it…",
    "Next, I will run it...",
  ])("%j is reminded once while todos are open", async (text) => {
    await story({ files: { "a.txt": "one\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("todowrite", { todos })).reply(text);
      model.reply(reply.call("read", { filePath: "a.txt" })).reply(text);
      expect((await editor.prompt(sessionId, "Read it")).stopReason).toBe("end_turn");
      expect(model.requests[2]?.userText).toMatch(/announced a step but made no tool call/);
      expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ kind: "read", status: "completed" }]);
      expect(model.requests).toHaveLength(4);
    });
  });

  test.each([
    ["Which of the two is meant?", todos],
    ["All is read. Let me know if more is wanted.", todos],
    ["Let me read the file first:", [{ ...todos[0], status: "completed" }]],
  ])("%j with %j is an answer", async (text, list) => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("todowrite", { todos: list })).reply(text);
      expect((await editor.prompt(sessionId, "Read it")).stopReason).toBe("end_turn");
      expect(model.requests).toHaveLength(2);
    });
  });

  test("has no effect for a model of a large vendor", async () => {
    const config = { model: "test/gpt-5" };
    await story({ config }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.call("todowrite", { todos })).reply("Let me read the file first:");
      await editor.prompt(sessionId, "Read it");
      expect(model.requests).toHaveLength(2);
    });
  });
});
