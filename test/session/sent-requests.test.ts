import { describe, expect, test } from "vitest";
import { SentRequests } from "../../src/context/sent-requests.ts";
import { newMessageId, newPartId } from "../../src/message/ids.ts";
import type { AssistantInfo, Message, SentRequest } from "../../src/message/message.ts";
import type { Part, ToolPart } from "../../src/message/part.ts";
import { costOf } from "../../src/model/answer/usage.ts";
import { describeModel } from "../../src/model/catalog/catalog.ts";
import type { Model } from "../../src/model/model.ts";

const sessionId = "ses_1";
const model: Model = {
  ...describeModel({ provider: "test", model: "one" }, undefined),
  cost: { input: 1, output: 1, cacheRead: 0 },
};
const noTokens = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } };
const tools = [{ name: "read", description: "Reads.", schema: {} }];

const text = (value: string): Part => ({ id: newPartId(), type: "text", text: value });
const user = (value: string): Message => ({
  info: { id: newMessageId(), sessionId, role: "user", time: { created: 1 }, agent: "build" },
  parts: [text(value)],
});
function answer(parts: Part[], more: Partial<AssistantInfo> = {}): Message {
  const info: AssistantInfo = {
    id: newMessageId(),
    sessionId,
    role: "assistant",
    parentId: newMessageId(),
    time: { created: 2 },
    agent: "build",
    model: model.ref,
    cost: 0,
    tokens: noTokens,
    ...more,
  };
  return { info, parts };
}
function readCall(output: string): ToolPart {
  const time = { start: 1, end: 2 };
  const state = { status: "completed", input: { filePath: "a" }, output, time } as const;
  return { id: newPartId(), type: "tool", callId: "call", tool: "read", state };
}

/** A conversation whose requests are recorded as they are sent. */
class Conversation {
  messages: Message[] = [];
  requests = new SentRequests(costOf);
  head = { system: ["You are an agent."], tools };
  agent = "build";
  model = model;
  hasExpired = false;

  /** Sends a request and adds its answer. */
  send(parts: Part[] = [text("Yes.")]): SentRequest {
    const { head, messages, agent, hasExpired } = this;
    const sent = this.requests.describe({ ...head, messages, agent, model: this.model, hasExpired });
    this.messages.push(answer(parts, { sent, agent, model: this.model.ref }));
    return sent;
  }
}

function converse(): { conversation: Conversation; last: SentRequest } {
  const conversation = new Conversation();
  conversation.messages.push(user("Read it"));
  conversation.send([readCall("one ".repeat(500))]);
  conversation.send();
  conversation.messages.push(user("Go on"));
  return { conversation, last: conversation.send() };
}

const summary = (): Message =>
  answer([text("We read it.")], { summary: true, finish: "stop", time: { created: 8 } });

function replaceState(message: Message | undefined, change: object): void {
  const part = message?.parts[0];
  if (message === undefined || part?.type !== "tool") throw new Error("no call to change");
  message.parts[0] = { ...part, state: { ...part.state, ...change } };
}

describe("a request compared with earlier ones", () => {
  test("begins with all of the previous one, also after messages were undone", () => {
    const { conversation, last } = converse();
    conversation.messages.push(user("And now"));
    expect(conversation.send()).toMatchObject({ kept: last.tokens });
    conversation.messages.splice(-2);
    conversation.messages.push(user("Something else"));
    const sent = conversation.send();
    expect([sent.kept, sent.cause]).toEqual([last.tokens, undefined]);
  });

  test("continues with the stored digests in another process", () => {
    const { conversation, last } = converse();
    conversation.messages = structuredClone(conversation.messages);
    conversation.requests = new SentRequests(costOf);
    conversation.messages.push(user("And now"));
    expect(conversation.send()).toMatchObject({ kept: last.tokens });
  });

  const changes: [NonNullable<SentRequest["cause"]>, (conversation: Conversation) => void][] = [
    [
      "model",
      (one) => {
        one.model = { ...model, ref: { provider: "test", model: "two" } };
      },
    ],
    [
      "system",
      (one) => {
        one.head = { ...one.head, system: ["You are another."] };
      },
    ],
    [
      "tools",
      (one) => {
        one.head = { ...one.head, tools: [...tools, ...tools] };
      },
    ],
    [
      "agent",
      (one) => {
        one.agent = "review";
        one.head = { ...one.head, system: ["You review."] };
      },
    ],
    [
      "compaction",
      (one) => {
        one.messages = [user("Earlier"), summary(), ...one.messages.slice(1)];
      },
    ],
    ["cleared", (one) => replaceState(one.messages[1], { compactedAt: 9 })],
    ["messages", (one) => replaceState(one.messages[1], { shownOutput: "one" })],
  ];
  test.each(changes)("loses tokens by a change of kind %s, with their price", (cause, change) => {
    const { conversation, last } = converse();
    change(conversation);
    const sent = conversation.send();
    const reusable = Math.min(last.tokens, sent.tokens);
    expect(sent).toMatchObject({ cause, lost: reusable - sent.kept });
    expect(sent.kept).toBeLessThan(reusable);
    expect(sent.cost).toBeCloseTo((sent.lost ?? 0) / 1_000_000, 9);
    conversation.messages.push(user("And now"));
    expect(conversation.send().cause, "it breaks once").toBeUndefined();
  });

  test("loses everything when the provider's cache has expired", () => {
    const { conversation, last } = converse();
    conversation.hasExpired = true;
    expect(conversation.send()).toMatchObject({ cause: "expired", kept: last.tokens, lost: last.tokens });
  });
});
