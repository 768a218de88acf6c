import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { toList, toObject } from "../../support/json.ts";
import type { ModelRequest } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";
import { storiesOfOneAgent, type StoryContext } from "../../support/editor/story.ts";
import { agentText, toolCalls } from "../../support/transcript.ts";

const story = storiesOfOneAgent();

const read = (filePath: string) => reply.callScript("read", { filePath });

/** Has the model make these calls in one step. Returns the request that contains their results. */
async function resultsOf(
  steps: readonly reply.Step[],
  check?: (context: StoryContext & { sessionId: string }) => Promise<void>,
  files: Record<string, string> = { "a.txt": "one\n", "b.txt": "two\n" },
): Promise<ModelRequest> {
  let answer: ModelRequest | undefined;
  await story({ files }, async (context) => {
    const { editor, model } = context;
    const { sessionId } = await editor.newSession();
    model.reply(steps).reply("Went on.");
    expect((await editor.prompt(sessionId, "Do it")).stopReason).toBe("end_turn");
    expect(agentText(editor.updates(sessionId))).toMatch(/Went on\.$/);
    answer = model.requests[1];
    await check?.({ ...context, sessionId });
  });
  if (answer === undefined) throw new Error("The model was not asked again.");
  return answer;
}

/**
 * Groq's response to an invalid call of its model (https://github.com/langchain4j/langchain4j/issues/2585).
 */
const refusal = (failed_generation: string, message = "tool call validation failed: missing properties") => ({
  error: {
    message,
    type: "invalid_request_error",
    code: "tool_use_failed",
    failed_generation,
    status_code: 400,
  },
});
const refusedRead = '{"name": "read", "arguments": {"path": "a.txt"}}';
const refusedInStream = (generation: string) => [
  ...reply.think("I read it."),
  reply.line("event: error"),
  reply.chunk(refusal(generation)),
  reply.end(),
];

describe("calls that the provider refuses", () => {
  test.each<[string, reply.Step[]]>([
    ["in the stream", refusedInStream(refusedRead)],
    ["with status 400", [reply.status(400, refusal(refusedRead))]],
    [
      "by way of a gateway",
      [
        reply.errorEvent("Provider returned error", {
          code: 400,
          metadata: { raw: JSON.stringify(refusal(refusedRead)), provider_name: "Groq" },
        }),
        reply.end(),
      ],
    ],
  ])("are returned to the model as failed calls: %s", async (_, steps) => {
    const { toolResults, messages } = await resultsOf(steps);
    expect(toolResults).toEqual([expect.stringContaining("missing properties")]);
    expect(messages.flatMap(({ tool_calls: calls }) => toList(calls))).toMatchObject([
      { function: { name: "read", arguments: '{"path":"a.txt"}' } },
    ]);
  });

  test("become the answer if the model's text is not a call", async () => {
    const { toolResults } = await resultsOf(refusedInStream("<function=read>a.txt</function>"));
    expect(toolResults).toEqual([expect.stringContaining("<function=read>a.txt</function>")]);
  });

  test("end the turn with the provider's message after two in a row", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      const refused = refusedInStream(refusedRead);
      model.reply(refused).reply(refused).reply(refused);
      await expect(editor.prompt(sessionId, "Read")).rejects.toThrow(/missing properties/);
      expect(model.requests).toHaveLength(3);
      expect(editor.permissionRequests).toEqual([]);
    });
  });

  test("a call that Gemini could not read is requested again", async () => {
    const { toolResults } = await resultsOf([reply.finish("malformed_function_call")]);
    expect(toolResults).toEqual([expect.stringContaining("malformed_function_call")]);
  });
});

describe("calls that cannot run unchanged", () => {
  test("answers an unknown tool with the names of the known ones, the nearest first", async () => {
    const { toolResults } = await resultsOf(
      [reply.call("reed", { filePath: "a.txt" })],
      async ({ editor, sessionId }) => {
        expect(toolCalls(editor.updates(sessionId))).toMatchObject([{ title: "reed", status: "failed" }]);
      },
    );
    expect(toolResults).toEqual([
      expect.stringMatching(/There is no tool "reed"\. Use one of these: read, /),
    ]);
  });

  test("a tool's name in capitals is accepted", async () => {
    const { toolResults } = await resultsOf([reply.call("READ", { filePath: "a.txt" })]);
    expect(toolResults).toEqual([expect.stringContaining("1: one")]);
  });

  test("arguments that are not JSON return the JSON error to the model", async () => {
    const { toolResults } = await resultsOf([reply.call("read", '{"filePath": a.txt}')]);
    expect(toolResults).toEqual([expect.stringMatching(/arguments of read are not valid JSON/)]);
  });

  test("arguments with endless nesting return an error in any format", async () => {
    const deep = "[".repeat(50_000) + "]".repeat(50_000);
    const { toolResults } = await resultsOf([
      reply.call("read", `{"filePath":${deep}}`),
      reply.call(
        "nothing",
        `{"a":${deep.replaceAll("[", '{"a":').replaceAll("]", "}").replace(":}", ":1}")}}`,
      ),
      reply.call("read", { filePath: `${"[".repeat(230)}a.txt` }),
    ]);
    expect(toolResults).toEqual([
      expect.stringContaining("nest more than 200 levels"),
      expect.stringContaining('There is no tool "nothing".'),
      expect.stringContaining("does not exist"),
    ]);
  });

  test("null counts as a missing field where it is optional", async () => {
    const { toolResults } = await resultsOf([
      reply.call("read", { filePath: "a.txt", offset: null, limit: null }),
      reply.call("read", { filePath: null, limit: null }),
      reply.call("read", "[]"),
    ]);
    expect(toolResults).toEqual([
      expect.stringContaining("1: one"),
      expect.stringContaining("- filePath: Invalid input: expected string, received null"),
      expect.stringContaining("- the arguments: Invalid input: expected object, received array"),
    ]);
  });

  test("wrong and missing fields are named in the error", async () => {
    const { toolResults } = await resultsOf([
      reply.call("read", { filePath: "a.txt", offset: "first" }),
      reply.call("read", { target: "a.txt" }),
      reply.call("read", [1]),
    ]);
    expect(toolResults).toEqual([
      expect.stringMatching(/- offset: /),
      expect.stringMatching(/- filePath is missing \(you sent target\)/),
      expect.any(String),
    ]);
  });

  test.each(["__proto__", "constructor", "toString", "hasOwnProperty", "a tool / with spaces"])(
    "the odd name %j is reported as an unknown tool",
    async (name) => {
      const { toolResults } = await resultsOf([reply.call(name, {})]);
      expect(toolResults).toEqual([expect.stringMatching(/There is no tool/)]);
    },
  );

  test("an empty name returns the list of tools", async () => {
    const { toolResults } = await resultsOf([reply.call("", {})]);
    expect(toolResults).toEqual([expect.stringMatching(/The call names no tool\. Use one of these: .*bash/)]);
  });

  test("unknown fields are ignored", async () => {
    const { toolResults } = await resultsOf([
      reply.call("read", '{"__proto__":{"filePath":"b.txt"},"constructor":1,"filePath":"a.txt"}'),
    ]);
    expect(toolResults).toEqual([expect.stringContaining("1: one")]);
  });

  test("missing and repeated ids are replaced", async () => {
    const { toolResults } = await resultsOf([
      reply.together(
        reply.callScript("read", { filePath: "a.txt" }, { id: "same" }),
        reply.callScript("read", { filePath: "b.txt" }, { id: "same" }),
        reply.callScript("read", { filePath: "a.txt" }, { id: null }),
        reply.callScript("read", { filePath: "b.txt" }, { id: null }),
      ),
    ]);
    const [one, two] = [expect.stringContaining("1: one"), expect.stringContaining("1: two")];
    expect(toolResults).toEqual([one, two, one, two]);
  });

  test("an id used in an earlier step is replaced", async () => {
    await story({ files: { "a.txt": "one\n", "b.txt": "two\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model
        .reply(reply.call("read", { filePath: "a.txt" }, { id: "same" }))
        .reply(reply.call("read", { filePath: "b.txt" }, { id: "same" }))
        .reply("Both.");
      await editor.prompt(sessionId, "Read");
      const ids = toolCalls(editor.updates(sessionId)).map(({ toolCallId }) => toolCallId);
      expect(new Set(ids).size).toBe(2);
      expect(model.requests[2]?.toolResults).toEqual([expect.stringContaining("1: two")]);
    });
  });

  test("the finish reason for tool calls without any call ends the turn", async () => {
    await story({}, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      model.reply(reply.say("Nothing to do."), reply.finish("tool_calls"));
      expect((await editor.prompt(sessionId, "Do it")).stopReason).toBe("end_turn");
      expect(model.requests).toHaveLength(1);
    });
  });
});

describe("many calls in one step", () => {
  test("fifty calls all get results, in order", async () => {
    const files = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`${at}.txt`, `number ${at}\n`]));
    const { toolResults, messages } = await resultsOf(
      [reply.together(...Object.keys(files).map(read))],
      async ({ editor, sessionId }) => {
        const titles = toolCalls(editor.updates(sessionId)).map(({ title, status }) => `${title} ${status}`);
        expect(titles).toEqual(Object.keys(files).map((name) => `Read ${name} completed`));
      },
      files,
    );
    expect(toolResults.map((text) => text.split("\n")[0])).toEqual(
      Object.values(files).map((text) => `1: ${text.trim()}`),
    );
    const calls = toList(messages.find(({ role }) => role === "assistant")?.tool_calls).map(toObject);
    expect(calls).toHaveLength(50);
  });

  test("two edits of one file are both made", async () => {
    await story({ files: { "a.txt": "one\ntwo\n" } }, async ({ editor, model, repository }) => {
      const { sessionId } = await editor.newSession();
      const edit = (oldString: string, newString: string) =>
        reply.callScript("edit", { filePath: "a.txt", oldString, newString });
      model.reply(reply.call("read", { filePath: "a.txt" }));
      model.reply(reply.together(edit("one", "1"), edit("two", "2"))).reply("Done.");
      await editor.prompt(sessionId, "Write digits");
      expect(await readFile(join(repository.path, "a.txt"), "utf8")).toBe("1\n2\n");
      const [, first, second] = toolCalls(editor.updates(sessionId));
      expect(first?.content).toMatchObject([{ oldText: "one\ntwo\n", newText: "1\ntwo\n" }]);
      expect(second?.content).toMatchObject([{ oldText: "1\ntwo\n", newText: "1\n2\n" }]);
    });
  });

  test("valid and invalid calls each get their own result", async () => {
    const { toolResults } = await resultsOf([
      reply.together(
        read("a.txt"),
        reply.callScript("nothing", {}),
        reply.callScript("read", "{"),
        reply.callScript("bash", { command: "exit 7" }),
        read("missing.txt"),
        read("b.txt"),
      ),
    ]);
    expect(toolResults).toEqual([
      expect.stringContaining("1: one"),
      expect.stringContaining("There is no tool"),
      expect.stringContaining("not valid JSON"),
      expect.stringContaining("[exit code 7]"),
      expect.stringContaining("missing.txt"),
      expect.stringContaining("1: two"),
    ]);
  });
});

describe("loops", () => {
  const again = (times: number) =>
    Array.from({ length: times }, () => reply.call("read", { filePath: "a.txt" }));

  test("the same call for the third time in a row asks; the first two do not", async () => {
    await story({ files: { "a.txt": "one\n" }, permission: "allow_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      for (const step of again(3)) model.reply(step);
      model.reply("Read thrice.");
      await editor.prompt(sessionId, "Read");
      const calls = toolCalls(editor.updates(sessionId));
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.toolCallId)).toEqual([
        calls[2]?.toolCallId,
      ]);
      expect(calls.map(({ status }) => status)).toEqual(["completed", "completed", "completed"]);
    });
  });

  test("a cycle of two calls asks at its third repetition", async () => {
    await story(
      { files: { "a.txt": "1\n", "b.txt": "2\n" }, permission: "allow_once" },
      async ({ editor, model }) => {
        const { sessionId } = await editor.newSession();
        for (const name of ["a.txt", "b.txt", "a.txt", "b.txt", "a.txt", "b.txt"]) {
          model.reply(reply.say("Let me see. "), reply.call("read", { filePath: name }));
        }
        model.reply("Enough.");
        await editor.prompt(sessionId, "Read");
        const calls = toolCalls(editor.updates(sessionId));
        expect(editor.permissionRequests.map(({ toolCall }) => toolCall.toolCallId)).toEqual([
          calls[5]?.toolCallId,
        ]);
      },
    );
  });

  test("a refusal is sent to the model, and the call is not made", async () => {
    const config = { experimental: { continue_loop_on_deny: true } };
    const options = { config, files: { "a.txt": "one\n" }, permission: "reject_once" } as const;
    await story(options, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      for (const step of again(3)) model.reply(step);
      model.reply("I stop.");
      expect((await editor.prompt(sessionId, "Read")).stopReason).toBe("end_turn");
      expect(toolCalls(editor.updates(sessionId)).map(({ status }) => status)).toEqual([
        "completed",
        "completed",
        "failed",
      ]);
      expect(model.requests[3]?.toolResults).toEqual([expect.stringContaining("The user rejected")]);
    });
  });

  test("calls that cannot run form a loop too", async () => {
    await story({ permission: "reject_once" }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      for (let step = 0; step < 3; step++) model.reply(reply.call("nothing", {}));
      expect((await editor.prompt(sessionId, "Read")).stopReason).toBe("end_turn");
      expect(editor.permissionRequests.map(({ toolCall }) => toolCall.title)).toEqual(["nothing"]);
      expect(model.requests).toHaveLength(3);
    });
  });

  test("the same call in another turn is not a loop", async () => {
    await story({ files: { "a.txt": "one\n" } }, async ({ editor, model }) => {
      const { sessionId } = await editor.newSession();
      for (let turn = 0; turn < 3; turn++) {
        model.reply(reply.call("read", { filePath: "a.txt" })).reply("Read.");
        await editor.prompt(sessionId, "Read");
      }
      expect(editor.permissionRequests).toEqual([]);
    });
  });
});
