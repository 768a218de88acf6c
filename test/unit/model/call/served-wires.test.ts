import { describe, expect, test } from "vitest";
import { toList, toObject, type JsonObject } from "../../../support/json.ts";
import { serveMessages } from "../../../support/model/messages-server.ts";
import {
  computeCost,
  anthropicPrice,
  MarkedCache,
  PrefixCache,
} from "../../../support/model/prompt-cache.ts";
import { serveResponses } from "../../../support/model/responses-server.ts";
import { encrypt, createSeal } from "../../../support/model/seal.ts";

const usage = { promptTokens: 100, completionTokens: 10, cachedTokens: 40, writtenTokens: 30 };
const schema = { type: "object", properties: {} };

/** The messages of a request and the problem of each. */
type Refused = readonly [what: string, change: JsonObject, problem: RegExp];

describe("the scripted Messages API", () => {
  const headers = { "x-api-key": "key", "anthropic-version": "2023-06-01" };
  const user = (...content: unknown[]) => ({ role: "user", content });
  const assistant = (...content: unknown[]) => ({ role: "assistant", content });
  const text = (words: string) => ({ type: "text", text: words });
  const use = (id: string) => ({ type: "tool_use", id, name: "read", input: {} });
  const result = (id: string) => ({ type: "tool_result", tool_use_id: id, content: "one" });
  const thought = { type: "thinking", thinking: "Hm", signature: createSeal("Hm") };
  const mark = { cache_control: { type: "ephemeral" } };
  const good = {
    model: "claude",
    max_tokens: 8_000,
    stream: true,
    thinking: { type: "enabled", budget_tokens: 2_000 },
    system: [{ ...text("You help."), ...mark }],
    tools: [{ name: "read", description: "Reads", input_schema: schema, ...mark }],
    messages: [
      user(text("Hi")),
      assistant(thought, text("I look."), use("toolu_1"), use("toolu_2")),
      user(result("toolu_1"), { ...result("toolu_2"), ...mark }, { ...text("Go on"), ...mark }),
    ],
  };
  const problems = (change: JsonObject, head: Record<string, string> = headers) =>
    serveMessages().violations({ ...good, ...change }, head);

  test("accepts a valid request", () => {
    expect(problems({})).toEqual([]);
  });

  test.each<Refused>([
    ["no max_tokens", { max_tokens: undefined }, /max_tokens: Field required/],
    ["a field of chat completions", { stream_options: {} }, /stream_options: Extra inputs/],
    [
      "a role that is not there",
      { messages: [{ role: "system", content: "x" }] },
      /Unexpected role "system"/,
    ],
    ["a blank text", { messages: [user(text(" "))] }, /non-whitespace/],
    ["an empty message", { messages: [user()] }, /non-empty content/],
    ["an answer as the last message", { messages: [user(text("Hi")), assistant(text("Ho"))] }, /assistant's/],
    [
      "a call without a result",
      { messages: [user(text("Hi")), assistant(thought, use("a")), user(text("x"))] },
      /without `tool_result` blocks immediately after: a/,
    ],
    ["a result without a call", { messages: [user(result("a"))] }, /unexpected `tool_use_id`.*: a/],
    [
      "a text before a result",
      { messages: [user(text("Hi")), assistant(thought, use("a")), user(text("x"), result("a"))] },
      /comes before a `tool_result`/,
    ],
    [
      "a changed thought",
      {
        messages: [user(text("Hi")), assistant({ ...thought, thinking: "Ha" }, use("a")), user(result("a"))],
      },
      /Invalid `signature`/,
    ],
    [
      "a call without its thoughts",
      { messages: [user(text("Hi")), assistant(use("a")), user(result("a"))] },
      /Expected `thinking`/,
    ],
    ["a block with an id", { messages: [user({ ...text("Hi"), id: "msg_1" })] }, /text\.id: Extra inputs/],
    [
      "five marks",
      { messages: [user(...Array.from({ length: 3 }, (_, at) => ({ ...text(`${at}`), ...mark })))] },
      /maximum of 4 blocks with cache_control.*Found 5/,
    ],
    ["a temperature while thinking", { temperature: 0.5 }, /only be set to 1 when thinking/],
    ["a small budget", { thinking: { type: "enabled", budget_tokens: 5 } }, /at least 1024/],
    ["a budget above the answer", { thinking: { type: "enabled", budget_tokens: 9_000 } }, /greater than/],
    ["a forced call while thinking", { tool_choice: { type: "any" } }, /forces tool use/],
    ["tools of chat completions", { tools: [{ type: "function", function: {} }] }, /tools\.function: Extra/],
  ])("rejects %s", (_, change, problem) => {
    expect(problems(change).join("\n")).toMatch(problem);
  });

  test("rejects a request without a key or a version", () => {
    expect(problems({}, {})).toHaveLength(2);
  });

  test("signs its thoughts and counts cached tokens separately", () => {
    const writer = serveMessages().write("claude", usage);
    const events = [
      ...writer.reasoning("H"),
      ...writer.reasoning("m"),
      ...writer.call(0, "{", { name: "read", id: "toolu_1" }),
      ...writer.call(1, "{}", { name: "read", id: "toolu_2" }),
      ...writer.call(0, "}"),
      ...writer.end("tool_calls", usage),
    ];
    expect(events.map(({ name }) => name)).toEqual([
      "message_start",
      "ping",
      ...["start", "delta", "delta", "delta", "stop"].map((part) => `content_block_${part}`),
      ...["start", "delta", "start", "delta", "delta", "stop", "stop"].map((part) => `content_block_${part}`),
      "message_delta",
      "message_stop",
    ]);
    const data = events.map((event) => event.data);
    expect(data).toContainEqual({
      type: "content_block_delta",
      index: 0,
      delta: { type: "signature_delta", signature: createSeal("Hm") },
    });
    expect(data.at(-2)).toMatchObject({
      delta: { stop_reason: "tool_use" },
      usage: { input_tokens: 30, cache_read_input_tokens: 40, cache_creation_input_tokens: 30 },
    });
  });
});

describe("the scripted Responses API", () => {
  const headers = { authorization: "Bearer key" };
  const user = { role: "user", content: [{ type: "input_text", text: "Hi" }] };
  const thought = { type: "reasoning", id: "rs_9", summary: [], encrypted_content: encrypt("Hm") };
  const use = { type: "function_call", call_id: "call_1", name: "read", arguments: "{}" };
  const result = { type: "function_call_output", call_id: "call_1", output: "one" };
  const reply = { role: "assistant", content: [{ type: "output_text", text: "Done" }] };
  const good = {
    model: "gpt",
    stream: true,
    store: false,
    include: ["reasoning.encrypted_content"],
    reasoning: { effort: "medium", summary: "auto" },
    instructions: "You help.",
    tools: [{ type: "function", name: "read", description: "Reads", parameters: schema, strict: false }],
    input: [user, thought, use, result, reply, user],
  };
  const problems = (change: JsonObject, head: Record<string, string> = headers) =>
    serveResponses().violations({ ...good, ...change }, head);

  test("accepts a valid request", () => {
    expect(problems({})).toEqual([]);
  });

  test.each<Refused>([
    ["a stored response", { store: undefined }, /lets the vendor store/],
    ["an earlier response", { previous_response_id: "resp_1" }, /goes on from a response/],
    ["no encrypted reasoning", { include: [] }, /encrypted reasoning/],
    ["a temperature while thinking", { temperature: 0.5 }, /no temperature/],
    ["a field of chat completions", { max_tokens: 5 }, /Unknown parameter: 'max_tokens'/],
    ["usage asked for", { stream_options: { include_usage: true } }, /stream_options\.include_usage/],
    [
      "tools of chat completions",
      { tools: [{ type: "function", function: {} }] },
      /tool undefined has no description/,
    ],
    ["a reference to an item", { input: [user, { type: "item_reference", id: "rs_1" }] }, /not persisted/],
    ["a call without an output", { input: [user, use] }, /No tool output found for function call call_1/],
    ["an output without a call", { input: [user, result] }, /No tool call found/],
    ["thoughts at the end", { input: [user, thought] }, /without its following item/],
    [
      "thoughts that were not encrypted here",
      { input: [user, { ...thought, encrypted_content: "Z0FBQUE=" }, reply] },
      /could not be verified/,
    ],
    [
      "thoughts without what was encrypted",
      { input: [user, { ...thought, encrypted_content: undefined }, reply] },
      /comes without its encrypted content/,
    ],
    ["an id of another kind", { input: [user, { ...use, id: "call_1" }, result] }, /begins with 'fc'/],
    [
      "a part of the wrong direction",
      { input: [{ role: "assistant", content: [{ type: "input_text", text: "x" }] }] },
      /'input_text' in a message of the role assistant/,
    ],
    ["a field that items lack", { input: [{ ...user, name: "x" }] }, /Unknown parameter: 'name'/],
  ])("rejects %s", (_, change, problem) => {
    expect(problems(change).join("\n")).toMatch(problem);
  });

  test("rejects a request without a key", () => {
    expect(problems({}, {})).toHaveLength(1);
  });

  test("accepts an item that was written after thoughts only with them", () => {
    const wire = serveResponses();
    const writer = wire.write("gpt", usage);
    const events = [
      ...writer.reasoning("Hm"),
      ...writer.text("I look."),
      ...writer.call(0, "{}", { name: "read", id: "call_1" }),
      ...writer.end("tool_calls", usage),
    ];
    const last = toObject(events.at(-1)?.data.response);
    const items = toList(last.output).map(toObject);
    expect(items.map(({ type }) => type)).toEqual(["reasoning", "message", "function_call"]);
    expect(last.usage).toMatchObject({ input_tokens: 100, input_tokens_details: { cached_tokens: 40 } });
    const check = (sent: readonly unknown[]) =>
      wire.violations({ ...good, input: [user, ...sent, result] }, headers).join("\n");
    expect(check(items)).toBe("");
    expect(check(items.slice(1))).toMatch(/'msg_\d+' of type 'message' came without its 'reasoning' item/);
    expect(check(items.slice(1).map((item) => ({ ...item, id: undefined })))).toBe("");
  });
});

describe("Anthropic's cache", () => {
  const block = (name: string, isMarked = false) => ({ text: name.repeat(4_000), isMarked });

  test("reads what was written up to a mark, and writes the rest up to the last mark", () => {
    const cache = new MarkedCache();
    const first = [block("a", true), block("b", true), block("c")];
    expect(cache.take(first)).toEqual({ read: 0, write: 2_000, fresh: 1_000 });
    const second = [block("a"), block("b"), block("c"), block("d", true)];
    expect(cache.take(second)).toEqual({ read: 2_000, write: 2_000, fresh: 0 });
    expect(computeCost({ read: 2_000, write: 2_000, fresh: 0 }, anthropicPrice)).toBe(2_700);
    expect(cache.take([block("x"), ...second])).toEqual({ read: 0, write: 5_000, fresh: 0 });
  });

  test("looks back 20 blocks from a mark", () => {
    const more = (count: number) => Array.from({ length: count }, () => block("c"));
    for (const [between, read] of [
      [18, 2_000],
      [19, 0],
    ] as const) {
      const cache = new MarkedCache();
      cache.take([block("aa", true)]);
      expect(cache.take([block("aa"), ...more(between), block("d", true)]).read).toBe(read);
    }
  });

  test("stores no short prompts", () => {
    const cache = new MarkedCache();
    const short = [{ text: "a".repeat(4_000), isMarked: true }];
    expect(cache.take(short)).toEqual({ read: 0, write: 0, fresh: 1_000 });
    expect(cache.take(short).read).toBe(0);
  });
});

describe("OpenAI's cache", () => {
  test("reads a common beginning in steps of 128 tokens from 1,024", () => {
    const cache = new PrefixCache();
    const prompt = "a".repeat(4 * 2_000);
    expect(cache.take(prompt, "one")).toEqual({ read: 0, write: 0, fresh: 2_000 });
    expect(cache.take(`${prompt}b`, "one")).toMatchObject({ read: 1_920 });
    expect(cache.take(prompt.slice(0, 4 * 1_023), "one")).toMatchObject({ read: 0 });
  });

  test("finds nothing under another key", () => {
    const cache = new PrefixCache();
    const prompt = "a".repeat(4 * 2_000);
    cache.take(prompt, "one");
    expect(cache.take(prompt, "other").read).toBe(0);
    expect(cache.take(prompt, "one").read).toBe(1_920);
  });
});
