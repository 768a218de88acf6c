import { describe, expect, test } from "vitest";
import { newMessageId, newPartId, newSessionId } from "../../src/message/ids.ts";
import type { Message } from "../../src/message/message.ts";
import type { Part } from "../../src/message/part.ts";
import { renderConversation } from "../../src/context/conversation-text.ts";
import { assistantInfo } from "../crash/support/stored-session.ts";

const sessionId = newSessionId();

function user(text: string): Message {
  const info = { id: newMessageId(), sessionId, role: "user", time: { created: 7 }, agent: "build" } as const;
  return { info, parts: [{ id: newPartId(), type: "text", text }] };
}

function step(tool: string, output: string): Message {
  const state = { status: "completed", input: {}, output, time: { start: 1, end: 2 } } as const;
  const kind = tool === "bash" ? "execute" : "other";
  const part: Part = { id: newPartId(), type: "tool", callId: "c", tool, kind, state };
  return { info: assistantInfo(sessionId), parts: [part] };
}

const lines = (count: number, name: string) =>
  Array.from({ length: count }, (_, at) => `${name} ${at}`).join("\n");

describe("the conversation as material for a summary", () => {
  test("contains the user's complete messages, the current request first", () => {
    const spec = `${lines(800, "rule")}\nthe last rule`;
    const text = renderConversation({ messages: [user(spec)], request: "Do it" }, 50_000);
    expect(text).toContain(spec);
    expect(text.indexOf("The request being worked on:\nDo it")).toBe(0);
  });

  test("keeps the beginning and more of the end of a command's output", () => {
    const output = `begin\n${lines(2_000, "passed")}\n1 test failed`;
    const text = renderConversation({ messages: [step("bash", output)] }, 50_000);
    expect(text).toContain("begin");
    expect(text).toContain("1 test failed");
    expect(text.length).toBeLessThan(3_000);
    const [head = "", tail = ""] = text.split("characters left out");
    expect(tail.length).toBeGreaterThan(head.length);
  });

  test("contains the complete reports of subagents", () => {
    const report = `${lines(900, "finding")}\nthe conclusion`;
    expect(renderConversation({ messages: [step("task", report)] }, 50_000)).toContain(report);
  });

  test("within a small limit omits outputs and steps before the user's messages", () => {
    const spec = `${lines(300, "rule")}\nthe last rule`;
    const steps = Array.from({ length: 200 }, (_, at) => step("read", `step ${at}: ${lines(200, "line")}`));
    const messages = [user(spec), ...steps, user("And now?")];
    const text = renderConversation({ messages, request: "Go on" }, 9_000);
    expect(text.length).toBeLessThanOrEqual(9_000);
    expect(text).toContain(spec);
    expect(text).toContain("And now?");
    expect(text).toContain("step 0:");
    expect(text).toContain("step 199:");
    expect(text).toContain("[… steps left out …]");
  });

  test("shortens only the longest of the user's messages, in its middle", () => {
    const long = `the first rule\n${lines(5_000, "rule")}\nthe last rule`;
    const messages = [user("A short wish"), user(long), user("Another wish")];
    const text = renderConversation({ messages }, 9_000);
    expect(text.length).toBeLessThanOrEqual(9_000);
    for (const part of ["A short wish", "the first rule", "the last rule", "Another wish"])
      expect(text).toContain(part);
  });
});
