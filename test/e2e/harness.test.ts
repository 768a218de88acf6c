import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test, vi } from "vitest";
import { plain, withElicitation, withFs, zedLike } from "../support/clients.ts";
import { Editor, type EditorOptions } from "../support/editor.ts";
import { expectGolden, normalise } from "../support/golden.ts";
import { listOf, objectOf, type JsonObject } from "../support/json.ts";
import { requestViolations } from "../support/model-checks.ts";
import { startModelServer, usualTitle, type ModelServer } from "../support/model-server.ts";
import { childrenOf, leftoversWith, processesWith } from "../support/processes.ts";
import * as reply from "../support/reply.ts";
import { story } from "../support/story.ts";
import { gitRepository, temporaryFolder, type TemporaryFolder } from "../support/temp.ts";
import { agentText, thoughtText, toolCalls } from "../support/transcript.ts";
import { wireViolations } from "../support/wire-checks.ts";
import { WireLog, type Direction } from "../support/wire-log.ts";

const fakeAgent = [fileURLToPath(new URL("../support/fake-agent-program.ts", import.meta.url))];

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

/** The deltas of a stream, with the finish reason as one more. */
async function deltas(response: Response): Promise<JsonObject[]> {
  const choices = (await events(response)).flatMap((event) => listOf(event.choices).map(objectOf));
  return choices.map(({ delta, finish_reason: finish }) => ({
    ...objectOf(delta),
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
    expect(objectOf(answer).choices).toEqual([
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

  test("says when a client went away in the middle of a stall", async () => {
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

  test("sends nothing but comments when that is the script", async () => {
    const model = await modelServer();
    const leaving = new AbortController();
    model.reply(reply.commentsOnly(1));
    const response = await ask(model, {}, leaving.signal);
    const chunk = await response.body?.getReader().read();
    expect(Buffer.from(chunk?.value ?? []).toString()).toMatch(/^: keep-alive\n\n/);
    leaving.abort();
  });

  test("cuts a character in two, and sends many deltas and huge lines", async () => {
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

  test("answers titles by itself and counts them apart", async () => {
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

  test("lets a standing reply and a function answer", async () => {
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

  test("complains about requests without a reply and about replies without a request", async () => {
    const model = await modelServer();
    expect((await ask(model)).status).toBe(400);
    expect(() => model.assertClean()).toThrow("Request 1 has no scripted reply; its user text is: Hi");
    const other = await modelServer();
    other.reply("never asked");
    expect(() => other.assertClean()).toThrow("1 scripted replies were never asked for.");
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
      ["A system message stands after the conversation began."],
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

describe("the editor", () => {
  async function start(more: Partial<EditorOptions> = {}): Promise<Editor> {
    const home = await temporaryFolder();
    const editor = new Editor({ home: home.path, cwd: home.path, program: fakeAgent, ...more });
    cleanups.push(() => home.remove());
    cleanups.push(() => editor.close());
    await editor.initialize();
    return editor;
  }

  test("holds a conversation and leaves a clean wire", async () => {
    const editor = await start();
    const { sessionId } = await editor.newSession();
    expect(await editor.prompt(sessionId, "hello")).toEqual({ stopReason: "end_turn" });
    expect(agentText(editor.updates(sessionId))).toBe("Hello there.");
    expect(thoughtText(editor.updates(sessionId))).toBe("Easy.");
    await editor.prompt(sessionId, "tool");
    expect(toolCalls(editor.updates(sessionId))).toEqual([
      { toolCallId: "call-a", title: "Write a file", status: "completed" },
    ]);
    expect(await editor.close()).toEqual({ code: 0, signal: null });
    editor.assertClean();
  });

  test.each([
    ["allow_once", "completed"],
    ["reject_once", "failed"],
    ["cancelled", "failed"],
  ] as const)("answers a permission request with %s", async (permission, status) => {
    const editor = await start({ permission });
    const { sessionId } = await editor.newSession();
    await editor.prompt(sessionId, "ask");
    expect(toolCalls(editor.updates(sessionId)).map((call) => call.status)).toEqual([status]);
    expect(editor.permissionRequests).toHaveLength(1);
    editor.assertClean();
  });

  test("answers open permission requests with cancelled when the turn is cancelled", async () => {
    const editor = await start({ permission: () => new Promise(() => {}) });
    const { sessionId } = await editor.newSession();
    const turn = editor.prompt(sessionId, "ask");
    await editor.permissionRequest(1);
    await editor.cancel(sessionId);
    expect(await turn).toEqual({ stopReason: "cancelled" });
  });

  test("finds it a problem to be asked without a policy, or for an option that is not there", async () => {
    const editor = await start();
    const { sessionId } = await editor.newSession();
    await editor.prompt(sessionId, "ask");
    editor.permission = "allow_always";
    await editor.prompt((await editor.newSession()).sessionId, "ask");
    expect(editor.problems()).toEqual([
      "Permission was asked for, but the test has no answer: Write a file",
      "The permission policy failed: Error: The agent offered no option of the kind allow_always.",
    ]);
  });

  test("waits for updates and cancels a turn", async () => {
    const editor = await start();
    const { sessionId } = await editor.newSession();
    const turn = editor.prompt(sessionId, "wait");
    expect(await editor.waitForKind(sessionId, "agent_message_chunk")).toMatchObject({
      content: { text: "Waiting." },
    });
    await editor.cancel(sessionId);
    expect(await turn).toEqual({ stopReason: "cancelled" });
    editor.assertClean();
  });

  test("names what it waited for when the deadline has passed", async () => {
    const editor = await start();
    const { sessionId } = await editor.newSession();
    await expect(editor.waitFor(sessionId, (update) => update.sessionUpdate === "plan", 20)).rejects.toThrow(
      /Waited 20 ms for an update that satisfies .*plan/,
    );
  });

  test("serves files from its buffers and from disk", async () => {
    const buffers = new Map<string, string>();
    const editor = await start({ client: withFs(buffers) });
    const { sessionId } = await editor.newSession();
    await expect(editor.prompt(sessionId, "read")).rejects.toThrow("Resource not found");
    const { cwd } = JSON.parse(
      editor.wire.entries.find(({ line }) => line.includes("session/new"))?.line ?? "",
    ).params;
    buffers.set(join(cwd, "buffer.txt"), "unsaved");
    await editor.prompt(sessionId, "read");
    expect(agentText(editor.updates(sessionId))).toBe("unsaved");
    editor.assertClean();
  });

  test("answers forms", async () => {
    const editor = await start({ client: withElicitation(() => ({ action: "accept", content: {} })) });
    const { sessionId } = await editor.newSession();
    await editor.prompt(sessionId, "form");
    expect(agentText(editor.updates(sessionId))).toBe("accept");
    expect(editor.elicitations.map(({ message }) => message)).toEqual(["Which one?"]);
    editor.assertClean();
  });

  test("writes raw bytes and keeps their answers apart", async () => {
    const editor = await start();
    await editor.write('{"jsonrpc":"2.0","id":"raw-1","method":"no/such');
    await editor.write('_method"}\nnot json\n');
    expect(await editor.response("raw-1")).toMatchObject({ error: { code: -32601 } });
    expect(await editor.response(null)).toMatchObject({ error: { code: -32700 } });
    editor.assertClean();
  });

  test("restarts on the same home and loads", async () => {
    const editor = await start();
    const { sessionId } = await editor.newSession();
    const before = editor.pid;
    await editor.kill();
    await editor.restart();
    await editor.initialize();
    await editor.load(sessionId);
    expect(agentText(editor.updates(sessionId))).toBe("Replayed.");
    expect(editor.pid).not.toBe(before);
    editor.assertClean();
  });

  test("reports an agent that does not exit at the end of its input", async () => {
    const editor = await start();
    await editor.prompt((await editor.newSession()).sessionId, "linger");
    expect(await editor.close(50)).toEqual({ code: null, signal: "SIGKILL" });
    expect(editor.problems()).toEqual(["Error: Waited 50 ms for the agent to exit. It was killed."]);
  });

  test("reports stray lines and updates after the turn, unless the test allows them", async () => {
    const editor = await start();
    const { sessionId } = await editor.newSession();
    await editor.prompt(sessionId, "noise");
    await editor.prompt(sessionId, "late");
    await editor.waitForKind(sessionId, "agent_message_chunk");
    expect(editor.problems()).toEqual([
      "[line] line 5: A line is no JSON object: a stray line",
      `[turn] line 9: agent_message_chunk came outside of a turn (session ${sessionId}).`,
    ]);
    editor.allow("line", "turn");
    editor.assertClean();
  });
});

describe("the wire log", () => {
  type Line = [Direction, JsonObject | string];
  const call = (id: number, method: string, params: JsonObject = {}): Line => [
    "toAgent",
    { jsonrpc: "2.0", id, method, params },
  ];
  const answer = (id: number, result: unknown = {}): Line => ["fromAgent", { jsonrpc: "2.0", id, result }];
  const request = (id: number, method: string, params: JsonObject = {}): Line => [
    "fromAgent",
    { jsonrpc: "2.0", id, method, params },
  ];
  const update = (sessionUpdate: string, more: JsonObject = {}): Line => [
    "fromAgent",
    {
      jsonrpc: "2.0",
      method: "session/update",
      params: { sessionId: "s", update: { sessionUpdate, ...more } },
    },
  ];
  const chunk = update("agent_message_chunk", { content: { type: "text", text: "x" } });
  const tool = (status?: string) =>
    update("tool_call", { toolCallId: "t", title: "T", ...(status && { status }) });
  const toolUpdate = (status: string) => update("tool_call_update", { toolCallId: "t", status });
  const initialize = (capabilities: JsonObject = {}, result: JsonObject = {}): Line[] => [
    call(0, "initialize", { protocolVersion: 1, clientCapabilities: capabilities }),
    answer(0, { protocolVersion: 1, ...result }),
  ];
  const opened = (capabilities: JsonObject = {}, result: JsonObject = {}): Line[] => [
    ...initialize(capabilities),
    call(1, "session/new", { cwd: "/", mcpServers: [] }),
    answer(1, { sessionId: "s", ...result }),
  ];
  const prompt = (id = 2) => call(id, "session/prompt", { sessionId: "s", prompt: [] });
  const ended = (id = 2, stopReason = "end_turn") => answer(id, { stopReason });
  const permission = request(0, "session/request_permission", {
    sessionId: "s",
    toolCall: { toolCallId: "t" },
    options: [],
  });
  const load = call(2, "session/load", { sessionId: "s", cwd: "/", mcpServers: [] });
  const modes = (currentModeId: string) => ({
    modes: { currentModeId, availableModes: [{ id: "build", name: "Build" }] },
  });
  const option = (more: JsonObject) => ({ configOptions: [{ id: "o", name: "O", ...more }] });
  const select = {
    type: "select",
    options: [{ group: "g", name: "G", options: [{ value: "a", name: "A" }] }],
  };

  function logOf(lines: Line[]): WireLog {
    const log = new WireLog();
    for (const [direction, line] of lines) {
      log.receive(direction, Buffer.from(`${typeof line === "string" ? line : JSON.stringify(line)}\n`));
    }
    return log;
  }

  const rulesBroken = (lines: Line[]) => wireViolations(logOf(lines)).map(({ rule, order }) => [rule, order]);

  test.each<[string, Line[]]>([
    [
      "a whole turn",
      [...opened(), prompt(), chunk, tool("pending"), permission, toolUpdate("completed"), ended()],
    ],
    ["a call that is announced in its final state", [...opened(), prompt(), tool("completed"), ended()]],
    [
      "a replay",
      [...initialize(), load, chunk, tool("failed"), update("usage_update", { used: 1, size: 2 }), answer(2)],
    ],
    [
      "a replay of a live session",
      [...opened(), prompt(), tool("completed"), ended(), load, tool("completed"), answer(2)],
    ],
    ["news between turns", [...opened(), update("session_info_update", { title: "T" })]],
    [
      "an answer to a line that could not be read",
      [
        ["toAgent", "{"],
        ["fromAgent", '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'],
      ],
    ],
    [
      "a mode and an option that are offered",
      [...opened({}, { ...modes("build"), ...option({ ...select, currentValue: "a" }) })],
    ],
    [
      "extensions",
      [...initialize(), request(0, "_vendor/ask"), call(1, "_vendor/get"), answer(1, { any: 1 })],
    ],
    [
      "what the client advertised",
      [
        ...opened({ ...zedLike().capabilities }, option({ type: "boolean", currentValue: true })),
        request(0, "fs/read_text_file", { sessionId: "s", path: "/a" }),
      ],
    ],
  ])("finds nothing wrong with %s", (_name, lines) => {
    expect(wireViolations(logOf(lines))).toEqual([]);
  });

  test.each<[string, Line[], [string, number][]]>([
    ["text on stdout", [["fromAgent", "hello"]], [["line", 0]]],
    ["an empty line", [["fromAgent", ""]], [["line", 0]]],
    ["a batch", [["fromAgent", "[]"]], [["line", 0]]],
    ["another JSON-RPC", [["fromAgent", '{"id":1,"result":{}}']], [["line", 0]]],
    [
      "a response with result and error",
      [...initialize(), ["fromAgent", '{"jsonrpc":"2.0","id":1,"result":1,"error":{}}']],
      [["line", 2]],
    ],
    [
      "a line of 2 MB",
      [
        ...opened(),
        prompt(),
        update("agent_message_chunk", { content: { type: "text", text: "x".repeat(2e6) } }),
        ended(),
      ],
      [["size", 5]],
    ],
    ["an answer to nothing", [...initialize(), answer(9)], [["answer", 2]]],
    ["a second answer", [...initialize(), answer(0, { protocolVersion: 1 })], [["answer", 2]]],
    ["no answer", [...opened(), prompt()], [["answer", 4]]],
    [
      "a result that breaks the schema",
      [call(0, "initialize"), answer(0, { protocolVersion: "one" })],
      [["schema", 1]],
    ],
    ["a result with an unknown key", [...opened({}, { models: {} })], [["schema", 3]]],
    ["an unknown update", [...opened(), update("rumour")], [["schema", 4]]],
    ["an unknown method", [...opened(), request(0, "session/gossip", { sessionId: "s" })], [["schema", 4]]],
    [
      "an error without a message",
      [call(0, "initialize"), ["fromAgent", '{"jsonrpc":"2.0","id":0,"error":{"code":1}}']],
      [["schema", 1]],
    ],
    [
      "a file read that was not advertised",
      [...opened(), request(0, "fs/read_text_file", { sessionId: "s", path: "/a" })],
      [["capability", 4]],
    ],
    [
      "a terminal that was not advertised",
      [...opened(), request(0, "terminal/create", { sessionId: "s", command: "ls" })],
      [["capability", 4]],
    ],
    [
      "a form that was not advertised",
      [
        ...opened(),
        request(0, "elicitation/create", {
          sessionId: "s",
          mode: "form",
          message: "?",
          requestedSchema: { type: "object", properties: {} },
        }),
      ],
      [["capability", 4]],
    ],
    [
      "a notice that was not advertised",
      [...opened(), update("notice", { severity: "info", title: "N" })],
      [["capability", 4]],
    ],
    [
      "a boolean option that was not advertised",
      [...opened({}, option({ type: "boolean", currentValue: true }))],
      [["capability", 3]],
    ],
    [
      "a terminal login that was not advertised",
      [...initialize({}, { authMethods: [{ type: "terminal", id: "t", name: "T" }] })],
      [["capability", 1]],
    ],
    [
      "terminal output that was not advertised",
      [
        ...opened(),
        prompt(),
        update("tool_call", {
          toolCallId: "t",
          title: "T",
          status: "completed",
          _meta: { terminal_info: {} },
        }),
        ended(),
      ],
      [["capability", 5]],
    ],
    ["a mode that is not offered", [...opened({}, modes("plan"))], [["selection", 3]]],
    [
      "a change to a mode that is not offered",
      [...opened({}, modes("build")), update("current_mode_update", { currentModeId: "plan" })],
      [["selection", 4]],
    ],
    [
      "an option's value that is not offered",
      [...opened({}, option({ ...select, currentValue: "b" }))],
      [["selection", 3]],
    ],
    [
      "an update before session/new was answered",
      [
        ...initialize(),
        call(1, "session/new"),
        update("session_info_update", {}),
        answer(1, { sessionId: "s" }),
      ],
      [["session", 3]],
    ],
    [
      "an update after session/close was answered",
      [
        ...opened(),
        call(2, "session/close", { sessionId: "s" }),
        answer(2),
        update("session_info_update", {}),
      ],
      [["session", 6]],
    ],
    ["text before any turn", [...opened(), chunk], [["turn", 4]]],
    ["text after the turn", [...opened(), prompt(), ended(), chunk], [["turn", 6]]],
    [
      "history on resume",
      [...initialize(), call(2, "session/resume", { sessionId: "s" }), chunk, answer(2)],
      [
        ["session", 3],
        ["turn", 3],
      ],
    ],
    [
      "news after a cancelled turn",
      [...opened(), prompt(), ended(2, "cancelled"), update("session_info_update", {})],
      [["silence", 6]],
    ],
    [
      "news after a load",
      [...initialize(), load, answer(2), update("available_commands_update", { availableCommands: [] })],
      [["silence", 4]],
    ],
    [
      "an update of an unknown call",
      [...opened(), prompt(), toolUpdate("completed"), ended()],
      [["tool", 5]],
    ],
    ["a call announced twice", [...opened(), prompt(), tool(), tool("completed"), ended()], [["tool", 6]]],
    [
      "a change after the terminal status",
      [...opened(), prompt(), tool(), toolUpdate("failed"), toolUpdate("completed"), ended()],
      [["tool", 7]],
    ],
    ["a call that is still open at the end", [...opened(), prompt(), tool(), ended()], [["tool", 6]]],
    ["a question about an unknown call", [...opened(), prompt(), permission, ended()], [["tool", 5]]],
    [
      "a question outside of a turn",
      [...opened(), prompt(), tool("completed"), ended(), permission],
      [["turn", 7]],
    ],
  ])("finds %s", (_name, lines, expected) => {
    expect(rulesBroken(lines)).toEqual(expected);
  });

  test("finds bytes that are not UTF-8 and a last line without an end", () => {
    const log = new WireLog();
    log.receive("fromAgent", Buffer.from([0x22, 0xff, 0x22, 0x0a, 0x7b]));
    expect(wireViolations(log).map(({ text }) => text)).toEqual([
      'A line is not UTF-8: "\ufffd"',
      "The last line has no end: {",
    ]);
  });

  test("puts lines together from pieces, cut anywhere", () => {
    const log = new WireLog();
    const bytes = Buffer.from('{"jsonrpc":"2.0","method":"größe"}\n{"jsonrpc":"2.0","method":"next"}\n');
    for (const byte of bytes) log.receive("fromAgent", Buffer.of(byte));
    expect(log.entries.map(({ message }) => message?.kind === "notification" && message.method)).toEqual([
      "größe",
      "next",
    ]);
  });

  test("lets a killed process owe its answers", () => {
    const log = logOf([...opened(), prompt()]);
    log.cut = true;
    expect(wireViolations(log)).toEqual([]);
  });

  test("becomes golden by naming ids and places and joining chunks", () => {
    const log = logOf([
      ["toAgent", { jsonrpc: "2.0", id: 1, method: "session/new", params: { cwd: "/tmp/home-1/repo" } }],
      ["fromAgent", { jsonrpc: "2.0", id: 1, result: { sessionId: "ses_123" } }],
      chunk,
      chunk,
      update("tool_call", { toolCallId: "c9", title: "ls ses_123 took 12 ms", rawInput: { elapsedMs: 4 } }),
      update("session_info_update", { updatedAt: "2026-01-01T00:00:00.000Z" }),
    ]);
    const update_ = (update: JsonObject) => ({
      jsonrpc: "2.0",
      method: "session/update",
      params: { sessionId: "<session-2>", update },
    });
    expect(normalise(log, { cwd: "/tmp/home-1/repo", home: "/tmp/home-1" })).toEqual({
      toAgent: [{ jsonrpc: "2.0", id: 0, method: "session/new", params: { cwd: "<cwd>" } }],
      fromAgent: [
        { jsonrpc: "2.0", id: 0, result: { sessionId: "<session-1>" } },
        update_({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "xx" } }),
        update_({
          sessionUpdate: "tool_call",
          toolCallId: "<call-1>",
          title: "ls <session-1> took <duration>",
          rawInput: { elapsedMs: "<duration>" },
        }),
        update_({ sessionUpdate: "session_info_update", updatedAt: "<time>" }),
      ],
    });
  });
});

describe("a story", () => {
  test("gives an agent a model, a home and a repository, and checks everything at the end", async () => {
    let home: TemporaryFolder | undefined;
    await story({ program: fakeAgent, files: { "a.txt": "a" } }, async (stage) => {
      home = stage.home;
      stage.model.reply("A scripted model.");
      const { sessionId } = await stage.editor.newSession();
      await stage.editor.prompt(sessionId, "model");
      expect(agentText(stage.editor.updates(sessionId))).toBe("A scripted model.");
      expect(await stage.repository.git("ls-files")).toBe("a.txt");
      expect(await stage.repository.git("status", "--porcelain")).toBe("");
    });
    expect(await leftoversWith("HOME", home?.path ?? "")).toEqual([]);
  });

  test("fails when the wire or the model found something, and prints the wire", async () => {
    const printed = vi.spyOn(console, "error").mockImplementation(() => {});
    cleanups.push(async () => printed.mockRestore());
    const noisy = story({ program: fakeAgent, client: plain() }, async ({ editor }) => {
      await editor.prompt((await editor.newSession()).sessionId, "noise");
    });
    await expect(noisy).rejects.toThrow("[line] line 5: A line is no JSON object: a stray line");
    const unasked = story({ program: fakeAgent }, async ({ model }) => {
      model.reply("never asked");
    });
    await expect(unasked).rejects.toThrow("1 scripted replies were never asked for.");
    expect(String(printed.mock.calls[0]?.[0])).toMatch(
      /The wire, its last lines:\n.*→ .*initialize[^]*← a stray line/,
    );
  });

  test("is compared with its golden files, which must exist", async () => {
    await story({ program: fakeAgent }, async ({ editor, repository, home }) => {
      const { sessionId } = await editor.newSession();
      await editor.prompt(sessionId, "hello");
      const places = { cwd: repository.path, home: home.path };
      await expectGolden("harness", editor.wire, places);
      await expect(expectGolden("no-such-file", editor.wire, places, false)).rejects.toThrow(
        "from-agent.json is missing",
      );
    });
  });
});

describe("the surroundings", () => {
  test("find processes by their parent and by their environment", async () => {
    const home = await temporaryFolder();
    cleanups.push(() => home.remove());
    const editor = new Editor({ home: home.path, cwd: home.path, program: fakeAgent });
    cleanups.push(() => editor.close());
    await editor.initialize();
    const pid = editor.pid ?? 0;
    expect((await childrenOf(process.pid)).map((child) => child.pid)).toContain(pid);
    const marked = (await processesWith("HOME", home.path)).map((child) => child.pid);
    expect(marked).toEqual(process.platform === "linux" ? [pid] : []);
    await editor.close();
    expect(await leftoversWith("HOME", home.path)).toEqual([]);
  });

  test("make a repository with one commit", async () => {
    await using repository = await gitRepository({ "src/a.ts": "export {};\n" });
    expect(await repository.git("log", "--format=%an %s")).toBe("Test First");
  });
});
