import { describe, expect, test } from "vitest";
import { estimateText } from "../../../../src/message/estimate.ts";
import { leakedCallReminder, uncertainCallReminder } from "../../../../src/conversation/reminders.ts";
import { newPartId } from "../../../../src/message/ids.ts";
import type { ToolPart } from "../../../../src/message/part.ts";
import { formatCall } from "../../../../src/model/answer/written-calls/call-texts.ts";
import { describeModel } from "../../../../src/model/catalog/catalog.ts";
import { withholdUntrusted } from "../../../../src/config/withhold.ts";

/** Tokens. */
const refusalLimit = 120;

test("refusals of calls as text are short", () => {
  for (const reminder of [leakedCallReminder("multiedit"), uncertainCallReminder("multiedit")])
    expect(estimateText(reminder)).toBeLessThanOrEqual(refusalLimit);
});

describe("a call in the history of a model that writes its calls as text", () => {
  const part: ToolPart = {
    id: newPartId(),
    type: "tool",
    callId: "call_1",
    tool: "read",
    state: { status: "pending", input: { filePath: "a" } },
  };

  test("is the model's own text", () => {
    expect(formatCall({ ...part, markup: "<read/>" })).toBe("<read/>");
  });

  test("is text in the documented format if another model made it natively", () => {
    const text = '\n<tool_call>\n{"name":"read","arguments":{"filePath":"a"}}\n</tool_call>';
    expect(formatCall(part)).toBe(text);
    expect(formatCall({ ...part, sent: { tool: "read", input: { path: "a" } } })).toContain('{"path":"a"}');
  });
});

describe("tool_calls", () => {
  const ref = { provider: "work", model: "coder" };
  const describeWith = (config: { tool_calls?: "native" | "text" }, toolCalls?: "native" | "text") =>
    describeModel(ref, { known: undefined, config, api: "chat", toolCalls }).callsAsText;

  test("is native unless the configuration says otherwise", () => {
    expect(describeWith({})).toBeUndefined();
    expect(describeWith({}, "native")).toBeUndefined();
  });

  test("of a model takes precedence over that of its provider", () => {
    expect(describeWith({}, "text")).toBe(true);
    expect(describeWith({ tool_calls: "native" }, "text")).toBeUndefined();
    expect(describeWith({ tool_calls: "text" })).toBe(true);
  });

  test("of a project without trust is withheld", () => {
    const { config, withheld } = withholdUntrusted({
      provider: { work: { tool_calls: "text", models: { coder: { tool_calls: "text" } } } },
    });
    expect(withheld).toEqual(["provider.work.tool_calls", "provider.work.models.coder.tool_calls"]);
    expect(config).toEqual({ provider: { work: { models: { coder: {} } } } });
  });
});
