import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Api } from "../../src/config/api.ts";
import { listen } from "../support/listen.ts";
import { ask, cuts, Replay, type Replayed } from "./replay.ts";
import { eventText } from "./forms/responses-form.ts";
import { wires } from "./wire.ts";

let replay: Replay;
beforeAll(async () => {
  replay = await Replay.start();
});
afterAll(() => replay[Symbol.asyncDispose]());

type Json = Readonly<Record<string, unknown>>;

/** Streams these events, byte by byte. */
const played = (api: Api, ...events: readonly Json[]): Promise<Replayed> =>
  replay.play(
    api,
    events.map((event) => eventText(event, String(event.type))).join(""),
    cuts["byte by byte"] ?? ((bytes) => [bytes]),
  );

const response = (more: Json): Json => ({
  id: "resp_1",
  object: "response",
  created_at: 1_790_000_000,
  model: "m",
  ...more,
});
const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
const message = (more: Json = {}): Json => ({
  type: "message_start",
  message: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: [],
    usage: { input_tokens: 10, output_tokens: 1 },
    ...more,
  },
});
const stopped = (stop_reason: string, more: Json = {}): Json[] => [
  {
    type: "message_delta",
    delta: { stop_reason, stop_sequence: null, ...more },
    usage: { output_tokens: 5 },
  },
  { type: "message_stop" },
];

describe("other endings of Responses", () => {
  test("a refusal is text", async () => {
    const item = { type: "message", id: "msg_1", role: "assistant", content: [] };
    const here = { item_id: "msg_1", output_index: 0, content_index: 0 };
    const { text, end } = await played(
      "responses",
      { type: "response.created", response: response({ status: "in_progress" }) },
      { type: "response.output_item.added", output_index: 0, item },
      { type: "response.content_part.added", ...here, part: { type: "refusal", refusal: "" } },
      { type: "response.refusal.delta", ...here, delta: "I cannot" },
      { type: "response.refusal.delta", ...here, delta: " do that." },
      { type: "response.refusal.done", ...here, refusal: "I cannot do that." },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: response({ status: "completed", usage }) },
    );
    expect(text).toBe("I cannot do that.");
    expect(end).toMatchObject({ type: "finish", reason: "refusal", tokens: { input: 10, output: 5 } });
  });

  test("an answer without an end failed, even if the server reports success", async () => {
    const delta = { type: "response.output_text.delta", output_index: 0, delta: "Half" };
    const stream = `${eventText(delta)}data: [DONE]\n\n`;
    const { text, end } = await replay.play("responses", stream, (bytes) => [bytes]);
    expect(text).toBe("Half");
    expect(end).toMatchObject({ type: "failed", error: { code: "invalid-response", retryable: true } });
  });

  test("reports that a filter stopped the answer", async () => {
    const { end } = await played("responses", {
      type: "response.incomplete",
      response: response({
        status: "incomplete",
        incomplete_details: { reason: "content_filter" },
        usage,
      }),
    });
    expect(end).toMatchObject({ type: "finish", reason: "content-filter" });
  });

  test("a truncated call does not run", async () => {
    const item = { type: "function_call", id: "fc_1", call_id: "call_1", name: "bash" };
    const { calls, end } = await played(
      "responses",
      { type: "response.output_item.added", output_index: 0, item: { ...item, arguments: "" } },
      {
        type: "response.function_call_arguments.delta",
        item_id: "fc_1",
        output_index: 0,
        delta: '{"command":"rm -r',
      },
      {
        type: "response.output_item.done",
        output_index: 0,
        item: { ...item, status: "incomplete", arguments: '{"command":"rm -r' },
      },
      {
        type: "response.incomplete",
        response: response({
          status: "incomplete",
          incomplete_details: { reason: "max_output_tokens" },
          usage,
        }),
      },
    );
    expect(calls.every(({ problem }) => problem !== undefined)).toBe(true);
    expect(end).toMatchObject({ type: "finish" });
  });
});

describe("other endings of Messages", () => {
  test("reports a refusal", async () => {
    const { end } = await played("messages", message(), ...stopped("refusal"));
    expect(end).toMatchObject({ type: "finish", reason: "refusal", tokens: { input: 10, output: 5 } });
  });

  test("an answer that begins within another one fails", async () => {
    const began = {
      type: "content_block_start",
      index: 0,
      content_block: { type: "tool_use", id: "toolu_1", name: "bash", input: {} },
    };
    const delta = (partial_json: string) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json },
    });
    const stop = { type: "content_block_stop", index: 0 };
    const again = message({ id: "msg_2" });
    const first = [message(), began, delta('{"command":"rm')];
    const second = [began, delta('{"command":"ls"}'), stop, ...stopped("tool_use")];
    const { calls, end } = await played("messages", ...first, again, ...second);
    expect(calls).toEqual([]);
    expect(end).toMatchObject({ type: "failed", error: { code: "invalid-response", retryable: true } });
    const repeated = await played("messages", message(), message(), ...second);
    expect(repeated.calls).toMatchObject([{ input: { command: "ls" } }]);
  });

  test("a full window truncates the answer", async () => {
    const { end } = await played("messages", message(), ...stopped("model_context_window_exceeded"));
    expect(end).toMatchObject({ type: "finish", reason: "length" });
  });

  test("a truncated call does not run", async () => {
    const { calls, end } = await played(
      "messages",
      message(),
      {
        type: "content_block_start",
        index: 0,
        content_block: { type: "tool_use", id: "toolu_1", name: "bash", input: {} },
      },
      {
        type: "content_block_delta",
        index: 0,
        delta: { type: "input_json_delta", partial_json: '{"command":"rm -r' },
      },
      { type: "content_block_stop", index: 0 },
      ...stopped("max_tokens"),
    );
    expect(calls.every(({ problem }) => problem !== undefined)).toBe(true);
    expect(end).toMatchObject({ type: "finish", reason: "length" });
  });
});

/**
 * Groq's response to an invalid call of its model (https://github.com/langchain4j/langchain4j/issues/2585).
 */
const refusal = {
  message: "tool call validation failed: missing properties: 'filePath'",
  type: "invalid_request_error",
  code: "tool_use_failed",
  failed_generation: '{"name": "read", "arguments": {"path": "a.txt"}}',
};

/** An answer that does not stream, of each API. */
const whole: Readonly<Record<Api, Json>> = {
  chat: { choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }] },
  responses: response({
    status: "completed",
    output: [{ type: "message", id: "msg_1", content: [{ type: "output_text", text: "Hello" }] }],
    usage,
  }),
  messages: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    content: [{ type: "text", text: "Hello" }],
    stop_reason: "end_turn",
    usage: { input_tokens: 10, output_tokens: 5 },
  },
};

describe.each(wires)("over $name", ({ api, begun, ended }) => {
  test("a call that the provider refuses becomes a failed call", async () => {
    for (const before of ["", begun]) {
      const frame = `event: error\ndata: ${JSON.stringify({ type: "error", error: refusal })}\n\n`;
      const { calls, end } = await replay.play(api, before + frame, (bytes) => [bytes]);
      expect(calls).toMatchObject([{ tool: "read", input: { path: "a.txt" } }]);
      expect(calls[0]?.problem).toContain("missing properties");
      expect(end).toMatchObject({ type: "finish", refusedCall: true });
    }
  });

  test("an answer that does not stream is read", async () => {
    await using server = await listen((request, answer) => {
      request.resume().once("end", () => {
        answer.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(whole[api]));
      });
    });
    const { text, end } = await ask(server.url, { api });
    expect([text, end]).toMatchObject(["Hello", { type: "finish", reason: "stop" }]);
  });

  test("events of unknown types are ignored", async () => {
    const unknown = eventText(
      { type: "vendor.surprise", delta: "no", data: { error: null } },
      "vendor.surprise",
    );
    const { text, end } = await replay.play(api, begun + unknown + ended, (bytes) => [bytes]);
    expect([text, end.type]).toEqual(["Hello", "finish"]);
  });
});
