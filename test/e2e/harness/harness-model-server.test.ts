import { afterEach, describe, expect, test } from "vitest";
import { toList, toObject, type JsonObject } from "../../support/json.ts";
import { requestViolations } from "../../support/model/model-checks.ts";
import { startModelServer, usualTitle, type ModelServer } from "../../support/model/model-server.ts";
import * as reply from "../../support/model/reply.ts";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

async function modelServer(): Promise<ModelServer> {
  const model = await startModelServer();
  cleanups.push(() => model.close());
  return model;
}

const user = (content: unknown) => ({ role: "user", content });
const body = (more: JsonObject = {}): JsonObject => ({
  model: "scripted",
  messages: [user("Hi")],
  stream: true,
  stream_options: { include_usage: true },
  ...more,
});

function ask(model: ModelServer, more: JsonObject = {}, signal?: AbortSignal): Promise<Response> {
  const headers = { "content-type": "application/json" };
  const init = { method: "POST", headers, body: JSON.stringify(body(more)) };
  return fetch(`${model.url}/chat/completions`, signal ? { ...init, signal } : init);
}

async function events(response: Response): Promise<JsonObject[]> {
  const lines = (await response.text()).split("\n\n").filter((line) => line.startsWith("data: {"));
  return lines.map((line): JsonObject => JSON.parse(line.slice(6)));
}

/** The deltas of a stream, including the finish reason. */
async function deltas(response: Response): Promise<JsonObject[]> {
  const choices = (await events(response)).flatMap((event) => toList(event.choices).map(toObject));
  return choices.map(({ delta, finish_reason: finish }) => ({
    ...toObject(delta),
    ...(finish !== null && { finish }),
  }));
}

describe("the model server", () => {
  test("streams text, reasoning, usage and an end", async () => {
    const model = await modelServer();
    model.reply(
      reply.think("Hm."),
      reply.say("Hel", "lo"),
      reply.usage({ promptTokens: 7, completionTokens: 3 }),
    );
    const response = await ask(model);
    const all = await events(response);
    expect(all.map(({ choices }) => choices)).toEqual([
      [{ index: 0, delta: { reasoning_content: "Hm." }, finish_reason: null }],
      [{ index: 0, delta: { content: "Hel" }, finish_reason: null }],
      [{ index: 0, delta: { content: "lo" }, finish_reason: null }],
      [{ index: 0, delta: {}, finish_reason: "stop" }],
      [],
    ]);
    expect(all.at(-1)?.usage).toMatchObject({ prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 });
    model.assertClean();
  });

  test("streams several calls interleaved, with missing, given and fresh ids", async () => {
    const model = await modelServer();
    model.reply(
      reply.together(
        reply.callScript("read", { a: 1 }, { id: null }),
        reply.callScript("grep", '{"half', { id: "same", pieces: 1 }),
      ),
      reply.call("bash", {}, { pieces: 1 }),
    );
    expect(await deltas(await ask(model))).toEqual([
      { tool_calls: [{ index: 0, type: "function", function: { name: "read", arguments: '{"a"' } }] },
      {
        tool_calls: [
          { index: 1, id: "same", type: "function", function: { name: "grep", arguments: '{"half' } },
        ],
      },
      { tool_calls: [{ index: 0, function: { arguments: ":1}" } }] },
      {
        tool_calls: [
          { index: 2, id: "call_1", type: "function", function: { name: "bash", arguments: "{}" } },
        ],
      },
      { finish: "tool_calls" },
    ]);
  });

  test("answers without a stream as one body", async () => {
    const model = await modelServer();
    model.reply("Hello", reply.call("read", { a: 1 }));
    const answer = await (await ask(model, { stream: false })).json();
    expect(toObject(answer).choices).toEqual([
      {
        index: 0,
        message: {
          role: "assistant",
          content: "Hello",
          reasoning_content: "",
          tool_calls: [{ id: "call_1", type: "function", function: { name: "read", arguments: '{"a":1}' } }],
        },
        finish_reason: "tool_calls",
      },
    ]);
  });

  test("waits at a gate until the test releases it", async () => {
    const model = await modelServer();
    const gate = reply.gate();
    model.reply(reply.say("before"), gate, reply.say("after"));
    const response = await ask(model);
    await gate.reached();
    gate.release();
    expect(await deltas(response)).toEqual([{ content: "before" }, { content: "after" }, { finish: "stop" }]);
    expect(await model.requests[0]?.ended).toBe("answered");
  });

  test("reports that a client disconnected during a stall", async () => {
    const model = await modelServer();
    const leaving = new AbortController();
    model.reply(reply.headers(), reply.stall());
    await ask(model, {}, leaving.signal);
    leaving.abort();
    expect(await (await model.request(1)).ended).toBe("cut");
  });

  test("answers with any status, headers and body", async () => {
    const model = await modelServer();
    model
      .reply(reply.failure(429, "Slow down", { "retry-after": "1" }))
      .reply(reply.htmlPage(502))
      .reply(reply.status(529, "busy"));
    const limited = await ask(model);
    expect([limited.status, limited.headers.get("retry-after"), await limited.json()]).toEqual([
      429,
      "1",
      { error: { message: "Slow down", type: "error", code: null } },
    ]);
    const page = await ask(model);
    expect([page.status, page.headers.get("content-type")]).toEqual([502, "text/html"]);
    const busy = await ask(model);
    expect([busy.status, await busy.text()]).toEqual([529, "busy"]);
  });

  test("resets the connection before the headers and in the middle of a text", async () => {
    const model = await modelServer();
    const gate = reply.gate();
    model.reply(reply.reset()).reply(reply.say("half"), gate, reply.reset());
    await expect(ask(model)).rejects.toThrow();
    const response = await ask(model);
    gate.release();
    await expect(response.text()).rejects.toThrow();
  });

  test("ends without a finish reason, without [DONE], or after an error event", async () => {
    const model = await modelServer();
    model
      .reply("a", reply.end())
      .reply("b", reply.finish("length"), reply.end())
      .reply("c", reply.errorEvent("broken"), reply.line("garbage"), reply.comment(), reply.end());
    expect(await deltas(await ask(model))).toEqual([{ content: "a" }]);
    const lengthEnd = await (await ask(model)).text();
    expect([lengthEnd.includes('"finish_reason":"length"'), lengthEnd.includes("[DONE]")]).toEqual([
      true,
      false,
    ]);
    const broken = await (await ask(model)).text();
    expect(broken.slice(broken.indexOf('data: {"error"'))).toBe(
      'data: {"error":{"message":"broken"}}\n\ngarbage\n: keep-alive\n\n',
    );
  });

  test("sends nothing but comments if the script says so", async () => {
    const model = await modelServer();
    const leaving = new AbortController();
    model.reply(reply.commentsOnly(1));
    const response = await ask(model, {}, leaving.signal);
    const chunk = await response.body?.getReader().read();
    expect(Buffer.from(chunk?.value ?? []).toString()).toMatch(/^: keep-alive\n\n/);
    leaving.abort();
  });

  test("splits a character, and sends many deltas and huge lines", async () => {
    const model = await modelServer();
    const gate = reply.gate();
    model
      .reply(reply.splitCharacter("Größe", gate))
      .reply(reply.tinyDeltas(20_000))
      .reply("y".repeat(20_000_000));
    const split = ask(model);
    await gate.reached();
    gate.release();
    expect(await deltas(await split)).toEqual([{ content: "Größe" }, { finish: "stop" }]);
    expect(await deltas(await ask(model))).toHaveLength(20_001);
    expect((await (await ask(model)).text()).length).toBeGreaterThan(20_000_000);
  });

  test("answers requests for titles itself and counts them separately", async () => {
    const model = await modelServer();
    model.reply("The story");
    const system = { role: "system", content: "You write titles for conversations.\nBe short." };
    expect(await deltas(await ask(model, { messages: [system, user("Hi")] }))).toEqual([
      { content: usualTitle },
      { finish: "stop" },
    ]);
    expect(await deltas(await ask(model))).toEqual([{ content: "The story" }, { finish: "stop" }]);
    expect([model.requests.length, model.titleRequests.length]).toEqual([1, 1]);
    model.assertClean();
  });

  test("accepts a permanent reply and a reply from a function", async () => {
    const model = await modelServer();
    model.when(({ userText }) => userText === "child", "from the child");
    model.replyWith(({ number, toolResults }) => `${number}: ${toolResults.join()}`);
    const call = { id: "a", type: "function", function: { name: "read", arguments: "{}" } };
    const messages = [
      user("Hi"),
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "a", content: "found" },
    ];
    expect(await deltas(await ask(model, { messages: [user("child")] }))).toContainEqual({
      content: "from the child",
    });
    expect(await deltas(await ask(model, { messages }))).toContainEqual({ content: "2: found" });
    model.assertClean();
  });

  test("reports requests without a reply and replies without a request", async () => {
    const model = await modelServer();
    expect((await ask(model)).status).toBe(400);
    expect(() => model.assertClean()).toThrow("Request 1 has no scripted reply; its user text is: Hi");
    const other = await modelServer();
    other.reply("never asked");
    expect(() => other.assertClean()).toThrow("1 scripted replies were not used.");
  });

  const call = (id: string, more: JsonObject = {}) => ({
    id,
    type: "function",
    function: { name: "read", arguments: "{}", ...more },
  });
  const calls = (...list: unknown[]) => ({ role: "assistant", content: null, tool_calls: list });
  const result = (id: string) => ({ role: "tool", tool_call_id: id, content: "done" });
  const tool = (more: JsonObject = {}) => ({
    type: "function",
    function: {
      name: "read",
      description: "Reads.",
      parameters: { type: "object", properties: {} },
      ...more,
    },
  });
  const conversation = (...messages: unknown[]) => body({ messages: [user("Hi"), ...messages] });

  test.each<[string, JsonObject, string[]]>([
    ["a sound request", conversation(calls(call("a"), call("b")), result("b"), result("a")), []],
    [
      "a call without a result",
      conversation(calls(call("a"), call("b")), result("a")),
      ["The call b has no tool message."],
    ],
    [
      "a result without a call",
      conversation(result("a")),
      ["The tool message a answers no call of the message before it."],
    ],
    [
      "two results of one call",
      conversation(calls(call("a")), result("a"), result("a")),
      ["The tool message a answers no call of the message before it."],
    ],
    [
      "a result after the next message",
      conversation(calls(call("a")), user("Next"), result("a")),
      ["The call a has no tool message.", "The tool message a answers no call of the message before it."],
    ],
    [
      "an id used twice",
      conversation(calls(call("a")), result("a"), calls(call("a")), result("a")),
      ["The call id a is used twice."],
    ],
    ["a call without an id", conversation(calls(call("")), result("")), ["A call has no id."]],
    [
      "a call with an odd name",
      conversation(calls(call("a", { name: "a b" })), result("a")),
      ['A call has the name "a b".'],
    ],
    [
      "arguments that do not parse",
      conversation(calls(call("a", { arguments: '{"x' })), result("a")),
      ['The arguments of a call are no JSON object: {"x'],
    ],
    [
      "an empty assistant message",
      conversation({ role: "assistant", content: "" }, user("Next")),
      ["A assistant message is empty."],
    ],
    [
      "an empty text part",
      body({ messages: [user([{ type: "text", text: "" }])] }),
      ["A user message is empty."],
    ],
    [
      "a null",
      conversation({ role: "tool", tool_call_id: null, content: "x" }, user("x")),
      [
        "A tool message has null as tool_call_id.",
        "The tool message null answers no call of the message before it.",
      ],
    ],
    [
      "two assistant messages in a row",
      conversation({ role: "assistant", content: "a" }, { role: "assistant", content: "b" }, user("x")),
      ["Two assistant messages follow each other."],
    ],
    [
      "the assistant at the end",
      conversation({ role: "assistant", content: "a" }),
      ["The last message is the assistant's."],
    ],
    [
      "a late system message",
      conversation({ role: "system", content: "Be good." }),
      ["A system message follows the beginning of the conversation."],
    ],
    [
      "no usage in the stream",
      body({ stream_options: undefined }),
      ["The request streams without stream_options.include_usage."],
    ],
    [
      "half a character",
      body({ messages: [user("\ud83d")] }),
      ["The messages contain half of a surrogate pair."],
    ],
    ["sound tools", body({ tools: [tool()] }), []],
    ["a tool offered twice", body({ tools: [tool(), tool()] }), ["The tool read is offered twice."]],
    ["a tool with an odd name", body({ tools: [tool({ name: "a.b" })] }), ['A tool has the name "a.b".']],
    [
      "a schema of another type",
      body({ tools: [tool({ parameters: { type: "string" } })] }),
      ["The schema of the tool read is not of type object."],
    ],
    [
      "a broken schema",
      body({ tools: [tool({ parameters: { type: "object", required: "all" } })] }),
      ["The schema of the tool read is broken: Error: schema is invalid: data/required must be array"],
    ],
  ])("checks %s", (_name, request, expected) => {
    expect(requestViolations(request)).toEqual(expected);
  });
});
