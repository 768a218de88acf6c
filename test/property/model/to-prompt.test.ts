import * as fc from "fast-check";
import { expect, test } from "vitest";
import { newMessageId, newPartId, newSessionId } from "../../../src/message/ids.ts";
import type { Message } from "../../../src/message/message.ts";
import type { Part, ToolState } from "../../../src/message/part.ts";
import { describeModel } from "../../../src/model/catalog/catalog.ts";
import type { Model } from "../../../src/model/model.ts";
import { quirksOf } from "../../../src/model/quirks.ts";
import { toPrompt } from "../../../src/model/prompt/prompt.ts";

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

test("each call has exactly one result, directly after its message, under a unique id", () => {
  fc.assert(
    fc.property(transcripts, fc.constantFrom(...models), (messages, model) => {
      const converted = convert(messages, model);
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

test("no message is empty, each input is an object and each name is valid at providers", () => {
  fc.assert(
    fc.property(transcripts, fc.constantFrom(...models), (messages, model) => {
      for (const { content } of convert(messages, model)) {
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
      const first = convert(messages, model);
      expect(convert(messages, model)).toEqual(first);
      expect(messages).toEqual(before);
    }),
  );
});

function convert(messages: readonly Message[], model: Model) {
  const { provider, model: id } = model.ref;
  const quirks = quirksOf(provider, "", id);
  const owner = { provider, model: id, api: "chat" };
  return toPrompt(messages, { model, owner, quirks, isRefused: () => false });
}

function callIds(content: string | readonly object[]): string[] {
  if (typeof content === "string") return [];
  return content.flatMap((part) => ("toolCallId" in part ? [String(part.toolCallId)] : []));
}
