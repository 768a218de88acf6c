import * as fc from "fast-check";
import { expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { newMessageId, newPartId, newSessionId } from "../../src/message/ids.ts";
import type { Message } from "../../src/message/message.ts";
import type { Part, ToolState } from "../../src/message/part.ts";
import { describeModel } from "../../src/model/catalog/catalog.ts";
import { Clients } from "../../src/model/client.ts";
import type { Model } from "../../src/model/model.ts";
import { callModel } from "../../src/model/stream.ts";
import { type ConvertedMessage, toModelMessages } from "../../src/model/request/to-model-messages.ts";

const sessionId = newSessionId();
const models = [
  "test/m",
  "mistral/x",
  "google/gemini-3-pro",
  "deepseek/deepseek-chat",
  "zai/glm-4.7",
  "openai/gpt-5",
].map((name) => {
  const [provider = "", model = ""] = name.split("/");
  return describeModel({ provider, model }, undefined);
});

/** A model whose messages are marked for the provider's cache. */
const marked = describeModel({ provider: "openrouter", model: "anthropic/claude-x" }, undefined);

const inputs = fc.oneof(fc.jsonValue(), fc.constant(undefined));
const attachments = fc.array(
  fc.record({
    mime: fc.constantFrom("image/png", "application/pdf", "x/y"),
    url: fc.constant("data:;base64,AA=="),
  }),
  { maxLength: 2 },
);
const time = fc.constant({ start: 1, end: 2 });
const states: fc.Arbitrary<ToolState> = fc.oneof(
  fc.record({ status: fc.constant("pending" as const), input: inputs }),
  fc.record({ status: fc.constant("running" as const), input: inputs, time }),
  fc.record({
    status: fc.constant("completed" as const),
    input: inputs,
    output: fc.string(),
    time,
    attachments,
    compactedAt: fc.option(fc.constant(5), { nil: undefined }),
  }),
  fc.record({
    status: fc.constant("error" as const),
    input: inputs,
    error: fc.string(),
    reason: fc.constantFrom("failed" as const, "rejected" as const),
  }),
);
const ids = fc.oneof(fc.constantFrom("a", "call_1", "__proto__", ""), fc.string());
const text = fc.string().map((text): Part => ({ id: newPartId(), type: "text", text }));
const reasoning = fc.string().map((text): Part => ({ id: newPartId(), type: "reasoning", text }));
const stepStart = fc.constant(null).map((): Part => ({ id: newPartId(), type: "step-start" }));
const tool = fc
  .record({ state: states, callId: ids, providerCallId: fc.option(ids, { nil: undefined }), tool: ids })
  .map((fields): Part => ({ id: newPartId(), type: "tool", ...fields }));

const users = fc.array(text, { maxLength: 3 }).map((parts): Message => ({
  info: { id: newMessageId(), sessionId, role: "user", time: { created: 1 }, agent: "build" },
  parts,
}));
const assistants = fc
  .tuple(fc.array(fc.oneof(text, reasoning, stepStart, tool)), fc.constantFrom(...models))
  .map(([parts, { ref }]): Message => ({
    info: {
      id: newMessageId(),
      sessionId,
      role: "assistant",
      parentId: newMessageId(),
      time: { created: 1 },
      agent: "build",
      model: ref,
      cost: 0,
      tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
    },
    parts,
  }));
const transcripts = fc.array(fc.oneof(users, assistants), { maxLength: 6 });

test("each call of a transcript has exactly one result, which follows its message at once, under an id used once", () => {
  fc.assert(
    fc.property(transcripts, fc.constantFrom(...models), (messages, model) => {
      const converted = flat(toModelMessages(messages, { model }));
      const seen: string[] = [];
      for (const [index, message] of converted.entries()) {
        if (message.role === "tool") expect(converted[index - 1]?.role).toBe("assistant");
        if (message.role !== "assistant") continue;
        const calls = callIds(message.content);
        const next = converted[index + 1];
        expect(next?.role === "tool" ? callIds(next.content) : []).toEqual(calls);
        seen.push(...calls);
      }
      const written = messages.flatMap(({ parts }) => parts).filter(({ type }) => type === "tool");
      expect(seen).toHaveLength(written.length);
      expect(new Set(seen).size).toBe(seen.length);
    }),
  );
});

test("no message is empty, each input is an object and each name is one that providers take", () => {
  fc.assert(
    fc.property(transcripts, fc.constantFrom(...models), (messages, model) => {
      for (const { content } of flat(toModelMessages(messages, { model }))) {
        expect(content.length).toBeGreaterThan(0);
        for (const part of typeof content === "string" ? [] : content) {
          if (part.type !== "tool-call") continue;
          expect(part.toolName).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
          expect(Object.prototype.toString.call(part.input)).toBe("[object Object]");
        }
      }
    }),
  );
});

test("the transcript is not changed and gives the same messages again", () => {
  fc.assert(
    fc.property(transcripts, fc.constantFrom(...models), (messages, model) => {
      const before = structuredClone(messages);
      const first = toModelMessages(messages, { model });
      expect(toModelMessages(messages, { model })).toEqual(first);
      expect(messages).toEqual(before);
    }),
  );
});

const changes = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("append" as const), message: fc.oneof(users, assistants) }),
    fc.record({ kind: fc.constant("drop" as const), at: fc.nat(5) }),
    fc.record({
      kind: fc.constant("part" as const),
      at: fc.nat(5),
      index: fc.nat(5),
      part: fc.oneof(text, tool),
    }),
  ),
  { maxLength: 5 },
);

test("what was written before is sent as it would be anew, however the transcript changed since", async () => {
  const cases = [transcripts, fc.constantFrom(...models, marked), changes] as const;
  await fc.assert(
    fc.asyncProperty(...cases, async (messages, model, steps) => {
      const kept = new Recorder();
      const check = async () =>
        expect(await kept.ask(model, messages)).toBe(await new Recorder().ask(model, messages));
      await check();
      for (const step of steps) {
        if (step.kind === "append") messages.push(step.message);
        else if (step.kind === "drop") messages.splice(step.at, 1);
        else messages[step.at]?.parts.splice(step.index, 1, step.part);
        await check();
        await check();
      }
    }),
  );
});

/** Keeps what would be sent. */
class Recorder {
  readonly #clients = new Clients(async (_, { body = [] }) => {
    this.#body = Buffer.concat(body).toString();
    throw new Error("nothing is sent");
  });
  #body = "";

  /** The request's body; empty where there is nothing to ask. */
  async ask(model: Model, messages: Message[]): Promise<string> {
    this.#body = "";
    const { provider, model: modelId } = model.ref;
    const end = await callModel(
      { model, system: ["be kind"], messages, tools: [], signal: new AbortController().signal },
      {
        provider,
        baseURL: `http://${provider}.invalid/v1`,
        headers: {},
        modelId,
        options: {},
        stallMs: 20_000,
      },
      { clients: this.#clients, log: silentLog },
      () => undefined,
    );
    expect(end.type).toBe("failed");
    return this.#body;
  }
}

const flat = (converted: readonly ConvertedMessage[]) => converted.flatMap(({ messages }) => messages);

function callIds(content: string | readonly object[]): string[] {
  if (typeof content === "string") return [];
  return content.flatMap((part) => ("toolCallId" in part ? [String(part.toolCallId)] : []));
}
