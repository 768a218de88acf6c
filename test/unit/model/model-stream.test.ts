import { once } from "node:events";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { setTimeout as delay } from "node:timers/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { afterEach, expect, test, vi } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { newMessageId, newPartId, newSessionId } from "../../../src/message/ids.ts";
import type { Message } from "../../../src/message/message.ts";
import { describeModel } from "../../../src/model/catalog/catalog.ts";
import type { ModelRequest, StepEvent } from "../../../src/model/model.ts";
import { Connection } from "../../../src/model/streams/connection.ts";
import { Reader } from "../../../src/model/wires/chat.ts";
import type { Endpoint } from "../../../src/model/endpoint.ts";
import { Wires } from "../../../src/model/wires/wires.ts";
import { type HttpAnswer, sendHttp } from "../../../src/model/http.ts";
import { callModel } from "../../../src/model/call/call-model.ts";
import { listen } from "../../support/listen.ts";
import { type CollectedEvent, collectEvents } from "../../support/collect-events.ts";

type Answer = (response: ServerResponse, request: IncomingMessage, body: Record<string, unknown>) => void;

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server[Symbol.asyncDispose]();
});

async function serve(answer: Answer): Promise<string> {
  const server = await listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => answer(response, request, JSON.parse(Buffer.concat(chunks).toString() || "{}")));
  });
  open.push(server);
  return server.url;
}

const key = "sk-very-secret-key";
const sessionId = newSessionId();
const question: Message = {
  info: { id: newMessageId(), sessionId, role: "user", time: { created: 1 }, agent: "build" },
  parts: [{ id: newPartId(), type: "text", text: "hello" }],
};
const model = describeModel({ provider: "test", model: "m" }, undefined);
const tool = (name: string) => ({ name, description: name, schema: { type: "object", properties: {} } });

function ask(
  baseURL: string,
  { endpoint = {}, ...request }: Partial<ModelRequest> & { endpoint?: Partial<Endpoint> } = {},
  take?: (event: StepEvent) => void,
): Promise<CollectedEvent[]> {
  const requested = [
    {
      model,
      system: ["be kind"],
      messages: [question],
      tools: [tool("read"), tool("bash")],
      signal: new AbortController().signal,
      ...request,
    },
    {
      provider: "test",
      baseURL,
      apiKey: key,
      headers: {},
      modelId: "m",
      options: {},
      stallMs: 20_000,
      ...endpoint,
    },
    { wires: new Wires(sendHttp), log: silentLog },
  ] as const;
  return collectEvents((each) => callModel(...requested, each), take);
}

const stream = (response: ServerResponse) =>
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
const data = (value: unknown) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
const delta = (fields: object, finish_reason: string | null = null) =>
  data({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: fields, finish_reason }] });
const say = (content: string) => delta({ content });
const callPiece = (index: number, fields: { id?: string | null; name?: string | null; arguments?: string }) =>
  delta({ tool_calls: [{ index, id: fields.id, type: "function", function: { ...fields, id: undefined } }] });
const usage = data({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 } });
const done = "data: [DONE]\n\n";
const ending = (reason = "stop") => delta({}, reason) + usage + done;

const partsOf = (answer: HttpAnswer) =>
  new Connection(new AbortController().signal, 3_600_000).read(answer, new Reader());

/** Calls a server that streams this answer. */
async function answered(text: string, request: Parameters<typeof ask>[1] = {}): Promise<CollectedEvent[]> {
  return ask(await serve((response) => stream(response).end(text)), request);
}

async function refused(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<CollectedEvent[]> {
  const base = await serve((response) =>
    response
      .writeHead(status, { "content-type": "application/json", ...headers })
      .end(typeof body === "string" ? body : JSON.stringify(body)),
  );
  return ask(base);
}

const field = (field: string) => ({
  provider: "test",
  model: "m",
  api: "chat",
  host: "127.0.0.1",
  data: { field },
});
const tokens = { input: 10, output: 4, reasoning: 0, cache: { read: 0, write: 0 } };
const textOf = (events: CollectedEvent[]) =>
  events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");
const callsOf = (events: CollectedEvent[]) => events.filter((event) => event.type === "call");
const failureOf = (events: CollectedEvent[]) => {
  const last = events.at(-1);
  return last?.type === "failed" ? last.error : undefined;
};

test("events with the content type of JSON are read as they arrive", async () => {
  const more = Promise.withResolvers<void>();
  const base = await serve((response) => {
    response.writeHead(200, { "content-type": "application/json" }).write("\r\n");
    response.write(`: ready\n\n${say("Hel")}`);
    void more.promise.then(() => response.end(say("lo") + ending()));
  });
  const events = await ask(base, {}, ({ type }) => {
    if (type === "text-delta") more.resolve();
    return undefined;
  });
  expect(textOf(events)).toBe("Hello");
  expect(events.at(-1)).toMatchObject({ type: "finish", reason: "stop" });
});

test("of several parallel answers the first counts, in any order", async () => {
  const choice = (index: number, content: string, finish_reason: string | null = null) => ({
    index,
    delta: { content },
    finish_reason,
  });
  const events = await answered(
    data({ choices: [choice(1, "Other"), choice(0, "Hel")] }) +
      data({ choices: [choice(1, " words", "stop")] }) +
      data({ choices: [choice(0, "lo"), choice(1, "!")] }) +
      ending(),
  );
  expect(textOf(events)).toBe("Hello");
  expect(textOf(await answered(data({ choices: [choice(1, "Alone", "stop")] }) + done))).toBe("Alone");

  const early = [choice(1, "Oh. "), choice(0, ""), choice(1, "Other"), choice(0, "Hello")];
  const chunks = early.map((one) => data({ choices: [one] }));
  expect(textOf(await answered(chunks.join("") + ending()))).toBe("Oh. Hello");
});

test("text that looks like JSON syntax stays text, in any order of a chunk's fields", async () => {
  const texts = [",", ":", '"', "\\", "{", "}", "[", "]", '","', '"}}]}', "\n", "data: ", "[DONE]"];
  const chunk = (fields: object, obfuscation: string) =>
    data({
      choices: [{ index: 0, delta: { ...fields, role: "assistant" } }],
      system_fingerprint: "fp",
      service_tier: "default",
      obfuscation,
    });
  const all = ["Sure", ...texts, "end"];
  const reply = all.map((content, at) => chunk({ content }, "x".repeat(at)));
  expect(textOf(await answered(reply.join("") + ending()))).toBe(all.join(""));
  const input = JSON.stringify({ path: all.join("") });
  const pieces = input
    .split("")
    .map((piece, at) =>
      chunk({ tool_calls: [{ function: { arguments: piece }, index: 0 }] }, "x".repeat(at % 5)),
    );
  const call = callPiece(0, { id: "a", name: "read", arguments: "" });
  expect(callsOf(await answered(call + pieces.join("") + ending("tool_calls")))).toMatchObject([
    { input: { path: all.join("") } },
  ]);
});

test("text, reasoning and usage arrive as blocks with one finish", async () => {
  const text =
    delta({ role: "assistant", content: "" }) +
    delta({ reasoning_content: "hm" }) +
    say("Hel") +
    say("lo") +
    delta({}, "stop") +
    data({
      choices: [],
      usage: {
        prompt_tokens: 100,
        completion_tokens: 30,
        prompt_tokens_details: { cached_tokens: 60 },
        completion_tokens_details: { reasoning_tokens: 20 },
      },
    }) +
    done;
  expect(await answered(text)).toEqual([
    { type: "reasoning-delta", text: "hm" },
    { type: "reasoning-end", metadata: field("reasoning_content") },
    { type: "text-delta", text: "Hello" },
    { type: "text-end" },
    {
      type: "finish",
      reason: "stop",
      tokens: { input: 40, output: 10, reasoning: 20, cache: { read: 60, write: 0 } },
    },
  ]);
});

test("a request carries system text, history, tools, options and the key as bearer", async () => {
  let seen:
    | { authorization: string | undefined; url: string | undefined; body: Record<string, unknown> }
    | undefined;
  const base = await serve((response, request, body) => {
    seen = { authorization: request.headers.authorization, url: request.url, body };
    stream(response).end(say("ok") + ending());
  });
  await ask(`${base}/v1/`, {
    temperature: 0.5,
    endpoint: { options: { reasoningEffort: "high", seed: 7 } },
    tools: [{ name: "read", description: "Reads.", schema: { $schema: "x", properties: { a: {} } } }],
  });
  expect(seen).toEqual({
    authorization: `Bearer ${key}`,
    url: "/v1/chat/completions",
    body: {
      model: "m",
      temperature: 0.5,
      seed: 7,
      reasoning_effort: "high",
      messages: [
        { role: "system", content: "be kind" },
        { role: "user", content: "hello" },
      ],
      tools: [
        {
          type: "function",
          function: {
            name: "read",
            description: "Reads.",
            parameters: { type: "object", properties: { a: {} } },
          },
        },
      ],
      tool_choice: "auto",
      stream: true,
      stream_options: { include_usage: true },
    },
  });
});

test("emits a call as soon as its arguments are complete, while later text streams", async () => {
  let proceed = () => {};
  const base = await serve((response) => {
    stream(response).write(
      say("Let me look.") +
        callPiece(0, { id: "a", name: "read", arguments: "" }) +
        callPiece(0, { arguments: '{"path":' }) +
        callPiece(0, { arguments: '"x}"}' }),
    );
    proceed = () => response.end(say("More.") + ending("tool_calls"));
  });
  const events = await ask(base, {}, ({ type }) => {
    if (type === "call") proceed();
    return undefined;
  });
  expect(events).toEqual([
    { type: "text-delta", text: "Let me look." },
    { type: "text-end" },
    { type: "call-start", providerCallId: "a", tool: "read" },
    { type: "call", providerCallId: "a", tool: "read", input: { path: "x}" }, raw: '{"path":"x}"}' },
    { type: "text-delta", text: "More." },
    { type: "text-end" },
    { type: "finish", reason: "tool-calls", tokens },
  ]);
});

test("fifty calls arrive completely and in order, and get ids if theirs are unusable", async () => {
  const ids = ["__proto__", "", "same", "same", null, "constructor"];
  const calls = Array.from({ length: 50 }, (_, index) => ({
    index,
    id: ids[index % ids.length],
    function: { name: "read", arguments: `{"n":${index}}` },
  }));
  const events = await answered(delta({ tool_calls: calls }) + ending("tool_calls"));
  const notice = callsOf(events);
  expect(notice.map(({ input }) => input)).toEqual(calls.map((_, n) => ({ n })));
  expect(new Set(notice.map(({ providerCallId }) => providerCallId)).size).toBe(50);
  expect(notice.every(({ providerCallId }) => providerCallId !== "")).toBe(true);
});

test("interleaved calls keep their own arguments", async () => {
  const events = await answered(
    callPiece(0, { id: "a", name: "read", arguments: "" }) +
      callPiece(1, { id: "b", name: "bash", arguments: '{"c"' }) +
      callPiece(0, { arguments: '{"p":1}' }) +
      callPiece(1, { arguments: ":2}" }) +
      ending("tool_calls"),
  );
  expect(callsOf(events).map(({ tool, input }) => [tool, input])).toEqual([
    ["read", { p: 1 }],
    ["bash", { c: 2 }],
  ]);
});

test("arguments that do not parse have a problem and their raw text", async () => {
  const events = await answered(
    callPiece(0, { id: "a", name: "read", arguments: '{"path": x}' }) +
      callPiece(1, { id: "b", name: "read", arguments: "[1]" }) +
      ending("tool_calls"),
  );
  expect(callsOf(events)).toEqual([
    {
      type: "call",
      providerCallId: "a",
      tool: "read",
      input: undefined,
      raw: '{"path": x}',
      problem: expect.stringContaining("not valid JSON"),
      isMalformed: true,
    },
    {
      type: "call",
      providerCallId: "b",
      tool: "read",
      input: undefined,
      raw: "[1]",
      problem: "The arguments of read are no JSON object. Call it again.",
      isMalformed: true,
    },
  ]);
});

test("a call without arguments has an empty object; one before the real one is dropped", async () => {
  const events = await answered(
    callPiece(0, { id: "a", name: "read", arguments: "" }) +
      callPiece(1, { id: "b", name: "read", arguments: "{}" }) +
      callPiece(1, { arguments: '{"p":1}' }) +
      callPiece(2, { id: "c", name: "read", arguments: "{}" }) +
      ending("stop"),
  );
  expect(
    callsOf(events).map(({ providerCallId, input, problem }) => [providerCallId, input, problem]),
  ).toEqual([
    ["b", { p: 1 }, undefined],
    ["a", {}, undefined],
    ["c", {}, undefined],
  ]);
  expect(events.at(-1)).toMatchObject({ type: "finish", reason: "tool-calls" });
});

test("calls that share an index are distinguished by their ids", async () => {
  const events = await answered(
    callPiece(0, { id: "a", name: "read", arguments: '{"p":1}' }) +
      callPiece(0, { id: "b", name: "read", arguments: '{"p":2}' }) +
      ending("tool_calls"),
  );
  expect(callsOf(events).map(({ input }) => input)).toEqual([{ p: 1 }, { p: 2 }]);
});

test("history with calls, results and images is sent in the provider's format", async () => {
  let seen: unknown;
  const base = await serve((response, _, body) => {
    seen = body.messages;
    stream(response).end(say("ok") + ending());
  });
  const image = { mime: "image/png", url: "data:image/png;base64,iVBORw0KGgo=", filename: "a.png" };
  const answer: Message = {
    info: {
      id: newMessageId(),
      sessionId,
      role: "assistant",
      parentId: question.info.id,
      time: { created: 1 },
      agent: "build",
      model: model.ref,
      cost: 0,
      tokens,
    },
    parts: [
      { id: newPartId(), type: "text", text: "Look:" },
      {
        id: newPartId(),
        type: "tool",
        callId: "own",
        providerCallId: "a",
        tool: "read",
        state: {
          status: "completed",
          input: { path: "a.png" },
          output: "an image",
          attachments: [image],
          time: { start: 1, end: 2 },
        },
      },
    ],
  };
  await ask(base, {
    model: { ...model, abilities: { ...model.abilities, images: true } },
    system: [],
    messages: [question, answer],
  });
  expect(seen).toEqual([
    { role: "user", content: "hello" },
    {
      role: "assistant",
      content: "Look:",
      tool_calls: [{ id: "a", type: "function", function: { name: "read", arguments: '{"path":"a.png"}' } }],
    },
    { role: "tool", tool_call_id: "a", content: "an image" },
    {
      role: "user",
      content: [
        { type: "text", text: "What read returned:" },
        { type: "image_url", image_url: { url: image.url } },
      ],
    },
  ]);
});

test("a base URL without its scheme is named as the mistake", async () => {
  expect(failureOf(await ask("localhost:1/v1"))?.message).toBe(
    'The base URL of test must begin with http:// or https://, but is "localhost:1/v1".',
  );
});

test("a name that arrives late or never does not lose the call", async () => {
  const events = await answered(
    callPiece(0, { id: "a", name: "", arguments: '{"p"' }) +
      callPiece(0, { name: "read", arguments: ":1}" }) +
      callPiece(1, { id: "b", name: null, arguments: "{}" }) +
      ending("tool_calls"),
  );
  expect(callsOf(events).map(({ tool, input }) => [tool, input])).toEqual([
    ["read", { p: 1 }],
    ["unnamed", {}],
  ]);
});

test("emits a call that the output limit truncated, with its problem", async () => {
  const events = await answered(
    callPiece(0, { id: "a", name: "bash", arguments: '{"command":"rm -rf /tm' }) +
      callPiece(1, { id: "b", name: "bash", arguments: "" }) +
      ending("length"),
  );
  expect(callsOf(events).map(({ input, problem }) => [input, problem?.slice(0, 28)])).toEqual([
    [undefined, "The arguments were cut off b"],
    [undefined, "The arguments were cut off b"],
  ]);
  expect(events.at(-1)).toEqual({ type: "finish", reason: "length", tokens });
});

test.each([
  ["stop", "stop"],
  ["end_turn", "stop"],
  ["length", "length"],
  ["max_tokens", "length"],
  ["content_filter", "content-filter"],
  ["SAFETY", "content-filter"],
  ["refusal", "refusal"],
  ["something new", "unknown"],
])("the finish reason %s means %s", async (given, meant) => {
  expect((await answered(say("x") + ending(given))).at(-1)).toEqual({
    type: "finish",
    reason: meant,
    tokens,
  });
});

test("a refusal is text and ends the answer", async () => {
  const events = await answered(delta({ content: null, refusal: "I will not." }) + ending("stop"));
  expect(textOf(events)).toBe("I will not.");
  expect(events.at(-1)).toMatchObject({ type: "finish", reason: "refusal" });
});

test("tokens are estimated if the provider reports none", async () => {
  const last = (await answered(say("some words of an answer") + delta({}, "stop") + done)).at(-1);
  expect(last).toEqual({
    type: "finish",
    reason: "stop",
    estimated: true,
    tokens: { input: expect.any(Number), output: 5, reasoning: 0, cache: { read: 0, write: 0 } },
  });
});

test("[DONE] without a finish reason ends an answer with content", async () => {
  expect((await answered(say("x") + usage + done)).at(-1)).toEqual({
    type: "finish",
    reason: "stop",
    tokens,
  });
});

test("the answer ends at [DONE] even if the connection stays open", async () => {
  const base = await serve((response) => void stream(response).write(say("x") + ending()));
  expect((await ask(base)).at(-1)).toEqual({ type: "finish", reason: "stop", tokens });
});

test("a complete answer waits for its usage for a limited time", async () => {
  vi.useFakeTimers();
  async function* body() {
    yield Buffer.from(say("x") + delta({}, "stop"));
    for (let sent = 0; sent < 100; sent++) {
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      yield Buffer.from(": still here\n\n");
    }
  }
  try {
    const cut = vi.fn();
    const answer: HttpAnswer = { status: 200, header: () => null, body: Readable.from(body()), cut };
    const parts: unknown[] = [];
    const left = partsOf(answer).pipeTo(new WritableStream({ write: (part) => void parts.push(part) }));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(cut).toHaveBeenCalled();
    await left;
    expect(parts.at(-1)).toMatchObject({ type: "finish", finishReason: { raw: "stop" } });
  } finally {
    vi.useRealTimers();
  }
});

test("the usage is awaited while nobody reads the end of an answer", async () => {
  vi.useFakeTimers();
  const body = new Readable({ read() {} });
  const answer: HttpAnswer = { status: 200, header: () => null, body, cut: () => body.destroy() };
  try {
    const reader = partsOf(answer).getReader();
    const next = async () => (await reader.read()).value;
    const first = next();
    for (const chunk of [callPiece(0, { id: "a", name: "read" }), callPiece(0, { arguments: "{}" })]) {
      body.push(chunk);
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(await first).toMatchObject({ type: "tool-input-start" });
    body.push(delta({}, "stop"));
    await vi.advanceTimersByTimeAsync(20_000);
    expect(await next()).toMatchObject({ type: "tool-input-delta" });
    const last = next();
    body.push(usage + done);
    await vi.advanceTimersByTimeAsync(1);
    expect(await last).toMatchObject({ type: "finish", usage: { inputTokens: { noCache: 10 } } });
  } finally {
    vi.useRealTimers();
  }
});

test.each([
  ["an end without a reason", say("x"), "broke off"],
  ["an empty answer", "", "answered with nothing"],
  ["what is no event stream", "Please pay.", "not a JSON object: Please pay."],
  ["[DONE] alone", done, "answered with nothing"],
  ["garbage", `${say("x")}data: {"choices":[{\n\n`, "not a JSON object"],
  ["a call cut in half", callPiece(0, { id: "a", name: "bash", arguments: '{"command":"rm' }), "broke off"],
])("%s is an invalid response that may be retried, and emits no call", async (_, text, words) => {
  const events = await answered(text);
  expect(failureOf(events)).toMatchObject({ code: "invalid-response", retryable: true });
  expect(failureOf(events)?.message).toContain(words);
  expect(callsOf(events)).toEqual([]);
});

test.each([
  [{ error: { message: "Overloaded", type: "overloaded_error" } }, { code: "overloaded", retryable: true }],
  [{ error: { message: "slow down", code: 429 } }, { code: "rate-limit", retryable: true }],
  [{ error: "it broke" }, { code: "server", retryable: true }],
  [
    { error: { message: "maximum context length is 10 tokens" } },
    { code: "context-length", retryable: false },
  ],
  [
    { type: "error", message: "bad", code: 400 },
    { code: "bad-request", retryable: false },
  ],
  [
    { object: "error", message: "bad", code: 400 },
    { code: "bad-request", retryable: false, message: "The provider refused the request: bad" },
  ],
  [{ detail: "the worker died" }, { code: "server", message: "The provider failed: the worker died" }],
])("an error event inside a good answer ends it: %j", async (event, expected) => {
  const events = await answered(say("begun") + data(event) + say("never"));
  expect(textOf(events)).toBe("begun");
  expect(failureOf(events)).toMatchObject(expected);
});

test.each([
  [401, { error: { message: "bad key" } }, { code: "auth", retryable: false }],
  [403, { error: { message: "no" } }, { code: "auth", retryable: false }],
  [
    403,
    {
      error: {
        code: "unsupported_country_region_territory",
        message: "Country, region, or territory not supported",
      },
    },
    {
      code: "bad-request",
      retryable: false,
      message: expect.stringContaining("does not serve your region (403)"),
    },
  ],
  [
    400,
    { error: { message: "User location is not supported for the API use.", status: "FAILED_PRECONDITION" } },
    {
      code: "bad-request",
      retryable: false,
      message: expect.stringContaining("does not serve your region (400)"),
    },
  ],
  [
    403,
    { error: { message: "Your team has no credits: insufficient balance" } },
    { code: "bad-request", retryable: false, message: expect.stringContaining("has no credit left (403)") },
  ],
  [
    402,
    { error: { message: "Pay first" } },
    { code: "bad-request", retryable: false, message: expect.stringContaining("has no credit left (402)") },
  ],
  [
    403,
    { error: { message: "Project p does not have access to model gpt-x", code: "model_not_found" } },
    {
      code: "bad-request",
      retryable: false,
      message: expect.stringContaining("may not use this model (403)"),
    },
  ],
  [
    403,
    { error: { message: "Your input was flagged", metadata: { reasons: ["violence"] } } },
    { code: "content-filter", retryable: false },
  ],
  [400, { error: { message: "no such field" } }, { code: "bad-request", retryable: false }],
  [404, { error: { message: "no model m" } }, { code: "not-found", retryable: false }],
  [408, {}, { code: "timeout", retryable: true }],
  [422, { detail: [{ msg: "wrong" }] }, { code: "bad-request", retryable: false }],
  [429, { error: { message: "slow" } }, { code: "rate-limit", retryable: true }],
  [429, { error: { message: "x", code: "insufficient_quota" } }, { code: "rate-limit", retryable: false }],
  [500, { error: { message: "oops" } }, { code: "server", retryable: true }],
  [502, "bad gateway", { code: "server", retryable: true }],
  [503, {}, { code: "overloaded", retryable: true }],
  [
    529,
    { type: "error", error: { type: "overloaded_error", message: "busy" } },
    { code: "overloaded", retryable: true },
  ],
])("status %i with %j is classified", async (status, body, expected) => {
  expect(failureOf(await refused(status, body))).toMatchObject({ ...expected, status });
});

test.each([
  "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
  "Your input exceeds the context window of this model",
  "prompt is too long: 201000 tokens > 200000 maximum",
  "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
  "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
  "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
  "Please reduce the length of the messages or completion.",
  "Prompt contains 40000 tokens: too large for model with 32768 maximum context length",
  "the request exceeds the available context size, try increasing it",
  "The number of tokens to keep from the initial prompt is greater than the context length",
])("a full context is recognized by the provider's message: %s", async (message) => {
  expect(failureOf(await refused(400, { error: { message } }))).toMatchObject({
    code: "context-length",
    retryable: false,
    message: expect.stringContaining(message),
  });
});

test.each([
  ["breaks off", (response: ServerResponse) => response.socket?.resetAndDestroy()],
  ["does not end", () => {}],
])("a status counts even if its body %s", async (_, go) => {
  const url = await serve((response) => {
    response.writeHead(401, { "content-length": 1000 });
    response.write('{"error":', () => go(response));
  });
  expect(failureOf(await ask(url))).toMatchObject({ code: "auth", status: 401, retryable: false });
});

test("returns the delay that a provider requests in milliseconds", async () => {
  const failed = failureOf(await refused(429, { error: { message: "slow" } }, { "retry-after-ms": "1500" }));
  expect(failed).toMatchObject({ retryAfterMs: 1500 });
});

test("the provider's message is in the error and the key is not", async () => {
  const failed = failureOf(await refused(401, { error: { message: `Incorrect key ${key} given` } }));
  expect(failed?.message).toBe(
    'The provider refused the key (401); check it or run "fairlead setup": Incorrect key [key] given',
  );
});

test.each([500, 200])("a web page with status %i is named in the error", async (status) => {
  const page = "<!doctype html><html><head><title>Proxy login</title></head></html>";
  const failed = failureOf(await refused(status, page, { "content-type": "text/html" }));
  expect(failed?.message).toContain('a web page ("Proxy login")');
});

test("a JSON error with status 200 and an answer that does not stream are parsed", async () => {
  expect(failureOf(await refused(200, { error: { message: "maximum context length" } }))).toMatchObject({
    code: "context-length",
  });
  const message = {
    role: "assistant",
    content: "whole",
    tool_calls: [{ id: "a", type: "function", function: { name: "read", arguments: '{"p":1}' } }],
  };
  const events = await refused(200, { choices: [{ index: 0, message, finish_reason: "tool_calls" }] });
  expect(textOf(events)).toBe("whole");
  expect(callsOf(events).map(({ input }) => input)).toEqual([{ p: 1 }]);
});

test.each(["text/plain", undefined])("JSON with the content type %s is parsed too", async (type) => {
  const as = (body: unknown) =>
    serve((response) =>
      response
        .writeHead(200, type === undefined ? {} : { "content-type": type })
        .end(JSON.stringify(body, undefined, 2)),
    );
  const failed = failureOf(await ask(await as({ error: { message: "maximum context length" } })));
  expect(failed).toMatchObject({ code: "context-length" });
  const message = { role: "assistant", content: "whole" };
  const answer = await as({ choices: [{ index: 0, message, finish_reason: "stop" }] });
  expect(textOf(await ask(answer))).toBe("whole");
});

test("counts given as text are numbers, and other values are not a reason to fail", async () => {
  const counts = { prompt_tokens: "10", completion_tokens: 4, cost: {}, completion_tokens_details: "none" };
  const events = await answered(say("x") + delta({}, "stop") + data({ choices: [], usage: counts }) + done);
  expect(events.at(-1)).toEqual({ type: "finish", reason: "stop", tokens });
});

test("unusual fields of servers are accepted", async () => {
  const chunks = [
    { choices: [{ delta: { role: "model", content: "a" } }], error: null, usage: null },
    { choices: [{ delta: { tool_calls: [{ id: 5, function: { name: "read", arguments: { p: 1 } } }] } }] },
    { object: "ping" },
    { choices: [{ finish_reason: "tool_calls" }] },
  ];
  const events = await answered(chunks.map(data).join(""));
  expect(textOf(events)).toBe("a");
  expect(callsOf(events).map(({ providerCallId, input }) => [providerCallId, input])).toEqual([
    ["5", { p: 1 }],
  ]);
});

test.each([
  ["of the type error", `${say("x")}event: error\ndata: {"code":429,"message":"Slow down"}\n\n`],
  [
    "of the type error with an error in it",
    'event: error\ndata: {"error":{"code":429,"message":"Slow down"}}\n\n',
  ],
  ["in a field of that name", `${say("x")}error: {"code":429,"message":"Slow down"}\n\n`],
])("an error %s contains the provider's message", async (_, text) => {
  const failed = failureOf(await answered(text));
  expect(failed).toMatchObject({ code: "rate-limit", message: expect.stringContaining("Slow down") });
});

test("keeps the provider's text of an error that is not JSON; a type is for one event", async () => {
  expect(failureOf(await answered("event: error\ndata: upstream died\n\n"))?.message).toBe(
    "The provider failed: upstream died",
  );
  expect(textOf(await answered(`event: error\n\n${say("fine")}${ending()}`))).toBe("fine");
});

test("a compressed answer that breaks off is a network error", async () => {
  const base = await serve((response) =>
    response
      .writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" })
      .end(gzipSync(say("begun") + ending()).subarray(0, 40)),
  );
  expect(failureOf(await ask(base))).toMatchObject({ code: "network", retryable: true });
});

test("an event that never ends is bounded", async () => {
  const line = Buffer.from(`data: ${"x".repeat(1024 * 1024)}\n`);
  const base = await serve((response) => void Readable.from(Array(70).fill(line)).pipe(stream(response)));
  const failed = failureOf(await ask(base));
  expect(failed).toMatchObject({ code: "invalid-response", retryable: false });
  expect(failed?.message).toContain("an event of more than");
});

test("a connection reset before and inside the stream is a network error", async () => {
  const before = await serve((response) => response.socket?.resetAndDestroy());
  expect(failureOf(await ask(before))).toMatchObject({ code: "network", retryable: true });
  const inside = await serve((response) =>
    stream(response).write(say("begun"), () => setImmediate(() => response.socket?.resetAndDestroy())),
  );
  const events = await ask(inside);
  expect(failureOf(events)).toMatchObject({ code: "network", retryable: true });
});

test("a server on this computer that does not run is retried once, with advice", async () => {
  const base = await serve(() => {});
  for (const server of open.splice(0)) await server[Symbol.asyncDispose]();
  const { origin } = new URL(base);
  const failed = failureOf(await ask(base));
  expect(failed).toEqual({
    code: "network",
    message: `Nothing listens on ${origin}. Start the server of the provider test, or correct the address, and try again.`,
    retryable: false,
  });
  const ollama = failureOf(await ask(base, { endpoint: { provider: "ollama" } }));
  expect(ollama?.message).toContain(`Nothing listens on ${origin}. Start Ollama (ollama serve), `);
});

test("silence before or inside the stream fails, even with comments", async () => {
  const silent = await serve(() => {});
  expect(failureOf(await ask(silent, { endpoint: { stallMs: 60 } }))).toEqual({
    code: "timeout",
    message: "The provider sent nothing for 0.1 s.",
    retryable: true,
  });
  const timers: NodeJS.Timeout[] = [];
  const commenting = await serve((response) => {
    stream(response).write(say("begun"));
    timers.push(setInterval(() => response.write(": still here\n\n"), 10));
  });
  const events = await ask(commenting, { endpoint: { stallMs: 500 } });
  timers.forEach(clearInterval);
  expect(textOf(events)).toBe("begun");
  expect(failureOf(events)).toMatchObject({ code: "timeout" });
});

test("the arguments of a call reset the silence timer", async () => {
  const tell = async (response: ServerResponse) => {
    stream(response).write(callPiece(0, { id: "call_1", name: "read", arguments: '{"a":"' }));
    for (let piece = 0; piece < 10; piece++) {
      await delay(50);
      response.write(callPiece(0, { arguments: "x" }));
    }
    response.end(callPiece(0, { arguments: '"}' }) + ending("tool_calls"));
  };
  const slow = await serve((response) => void tell(response));
  const events = await ask(slow, { endpoint: { stallMs: 350 } });
  expect(callsOf(events)).toMatchObject([{ tool: "read", input: { a: "xxxxxxxxxx" } }]);
  expect(events.at(-1)).toMatchObject({ type: "finish" });
});

test("an abort closes the emitted block, whatever followed it", async () => {
  const text = delta({ reasoning: "hm" }) + say("yes") + delta({ reasoning: "or" }) + say("no") + ending();
  const base = await serve((response) => stream(response).end(text));
  const controller = new AbortController();
  const events = await ask(base, { signal: controller.signal }, ({ type }) => {
    if (type === "reasoning-delta") controller.abort();
    return undefined;
  });
  expect(events).toEqual([
    { type: "reasoning-delta", text: "hm" },
    { type: "reasoning-end", metadata: field("reasoning") },
    { type: "failed", error: { code: "cancelled", message: "Cancelled.", retryable: false } },
  ]);
});

test("each request has its own tools and messages, whatever is cached of earlier ones", async () => {
  const bodies: Record<string, unknown>[] = [];
  const base = await serve((response, _request, body) => {
    bodies.push(body);
    stream(response).end(say("x") + ending());
  });
  const wires = new Wires(sendHttp);
  const endpoint = {
    provider: "test",
    baseURL: base,
    headers: {},
    modelId: "m",
    options: {},
    stallMs: 20_000,
  };
  const [first, second] = [[tool("read"), tool("bash")], [tool("tools read")]];
  const { signal } = new AbortController();
  for (const tools of [first, first, second, [], first])
    await callModel(
      { model, system: ["be kind"], messages: [question], tools, signal },
      endpoint,
      { wires, log: silentLog },
      () => undefined,
    );
  const asTold = (tools: readonly { name: string }[]) =>
    tools.map(({ name }) => ({
      type: "function",
      function: { name, description: name, parameters: { type: "object", properties: {} } },
    }));
  expect(bodies.map(({ tools }) => tools)).toEqual([
    asTold(first),
    asTold(first),
    asTold(second),
    undefined,
    asTold(first),
  ]);
  for (const { messages } of bodies)
    expect(messages).toEqual([
      { role: "system", content: "be kind" },
      { role: "user", content: "hello" },
    ]);
});

test("an abort ends the call at once, before and inside the stream", async () => {
  const silent = await serve((response) => void stream(response).write(say("begun")));
  for (const send of [sendHttp, () => new Promise<never>(() => {})]) {
    const controller = new AbortController();
    const request = { model, system: [], messages: [question], tools: [], signal: controller.signal };
    const endpoint = {
      provider: "test",
      baseURL: silent,
      headers: {},
      modelId: "m",
      options: {},
      stallMs: 20_000,
    };
    const deps = { wires: new Wires(send), log: silentLog };
    const events = collectEvents((take) => callModel(request, endpoint, deps, take));
    const started = performance.now();
    setTimeout(() => controller.abort(), 50);
    expect(failureOf(await events)).toEqual({
      code: "cancelled",
      message: "Cancelled.",
      retryable: false,
    });
    expect(performance.now() - started).toBeLessThan(2_000);
  }
  const aborted = AbortSignal.abort();
  expect(await ask(silent, { signal: aborted })).toEqual([
    { type: "failed", error: { code: "cancelled", message: "Cancelled.", retryable: false } },
  ]);
});

test("an error of the consumer closes the connection and ends the events", async () => {
  let closed: Promise<unknown> | undefined;
  const base = await serve((response) => {
    closed = once(response, "close");
    stream(response).write(say("begun"));
    response.write(delta({ reasoning: "and on" }));
  });
  let taken = 0;
  const take = ({ type }: StepEvent) => {
    if (type === "text-delta" && taken++ === 0) throw new Error("enough");
  };
  await expect(ask(base, {}, take)).rejects.toThrow("enough");
  await closed;
  expect(closed).toBeDefined();
  expect(taken).toBe(1);
});

test("waits until the consumer is ready before it reads more", async () => {
  const piece = say("x".repeat(100_000));
  let written = 0;
  const base = await serve((response) => {
    stream(response);
    const send = (): void => {
      while (!response.destroyed && response.write(piece)) written++;
      response.once("drain", send);
    };
    send();
  });
  let waits = 0;
  const enough = new AbortController();
  const waitUntilReady = async () => {
    // The buffers of the system and of both ends fill up, and then nothing moves.
    for (let before = -1; before !== written; await delay(20)) before = written;
    if (waits++ === 3) enough.abort();
  };
  await ask(base, { signal: enough.signal, waitUntilReady });
  expect(written).toBeLessThan(300);
});

test("the key does not follow a redirect to another host, but one on its own host", async () => {
  const thief: (string | undefined)[] = [];
  const other = await serve((response, request) => {
    thief.push(request.headers.authorization);
    response.end();
  });
  const away = await serve((response) => response.writeHead(307, { location: `${other}/v1` }).end());
  const failed = failureOf(await ask(away));
  expect(failed).toMatchObject({ code: "bad-request", retryable: false, status: 307 });
  expect(failed?.message).toContain("The key is not sent to another host");
  expect(thief).toEqual([]);

  const near = await serve((response, request) => {
    if (request.url === "/chat/completions")
      response.writeHead(308, { location: "/v1/chat/completions" }).end();
    else stream(response).end(say(request.headers.authorization ?? "") + ending());
  });
  expect(textOf(await ask(near))).toBe(`Bearer ${key}`);
});

test.each([301, 302, 303])(
  "a %i is reported with its target address, and not posted again",
  async (status) => {
    const requested: (string | undefined)[] = [];
    const base = await serve((response, request) => {
      requested.push(request.url);
      response.writeHead(status, { location: "/v2/chat/completions?key=secret" }).end();
    });
    const failed = failureOf(await ask(base));
    expect(failed).toMatchObject({ code: "bad-request", retryable: false, status });
    expect(failed?.message).toBe(
      `${base}/chat/completions answers ${status} and leads to ${base}/v2/chat/completions, which would not receive the request. Is the base URL right? If that address is, set it as base URL, without /chat/completions.`,
    );
    expect(requested).toEqual(["/chat/completions"]);
  },
);

test("half of a character at the end of thoughts does not reach the text", async () => {
  const events = await answered(delta({ reasoning_content: "hm \ud83d" }) + say("Hello") + ending());
  expect(textOf(events)).toBe("Hello");
});

test("a call in the field of older servers is a call", async () => {
  const piece = (part: object) => delta({ function_call: part });
  const events = await answered(
    piece({ name: "read", arguments: "" }) +
      piece({ arguments: '{"p":' }) +
      piece({ arguments: "1}" }) +
      ending("function_call"),
  );
  expect(callsOf(events)).toMatchObject([{ tool: "read", input: { p: 1 } }]);
  expect(events.at(-1)).toMatchObject({ type: "finish", reason: "tool-calls" });
});

test.each(["\n", "\r\n", "\r"])(
  "bytes split inside a character and lines with %j arrive whole",
  async (end) => {
    const bytes = Buffer.from((say("héllo 🌍") + ending()).replaceAll("\n", end));
    const base = await serve((response) => {
      stream(response);
      const send = (index: number): void => {
        if (index === bytes.length) response.end();
        else response.write(bytes.subarray(index, index + 1), () => send(index + 1));
      };
      send(0);
    });
    const events = await ask(base);
    expect(textOf(events)).toBe("héllo 🌍");
    expect(events.at(-1)).toMatchObject({ type: "finish" });
  },
);

test("joins the halves of a character, and replaces a lone half in a call's arguments", async () => {
  const half = JSON.stringify({ command: "echo \ud83d", "\udc00": 1 });
  const events = await answered(
    say("a\ud83d") +
      say("\ude00b") +
      callPiece(0, { id: "1", name: "bash", arguments: half }) +
      ending("tool_calls"),
  );
  expect(textOf(events)).toBe("a😀b");
  expect(events).toContainEqual(
    expect.objectContaining({ type: "call", input: { command: "echo \ufffd", "\ufffd": 1 } }),
  );
});

test("a line of 20 MB and 20,000 deltas at once arrive", async () => {
  const long = "x".repeat(20_000_000);
  expect(textOf(await answered(say(long) + ending()))).toHaveLength(long.length);
  const words = Array.from({ length: 20_000 }, (_, index) => `word ${index} `);
  const before = process.cpuUsage();
  const events = await answered(words.map(say).join("") + ending());
  const { user, system } = process.cpuUsage(before);
  expect(textOf(events)).toBe(words.join(""));
  expect((user + system) / 1_000).toBeLessThan(4_000);
});

test("a large call that arrives in tiny chunks is joined in linear time", async () => {
  const content = "line of a file\\n".repeat(20_000);
  const raw = `{"content":"${content}"}`;
  const pieces = raw.match(/[^]{1,10}/g) ?? [];
  const events = await answered(
    callPiece(0, { id: "a", name: "bash", arguments: "" }) +
      pieces.map((piece) => callPiece(0, { arguments: piece })).join("") +
      ending("tool_calls"),
  );
  expect(callsOf(events).map((call) => call.raw)).toEqual([raw]);
});
