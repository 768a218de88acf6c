import { expect, test } from "vitest";
import { askQuestions } from "../../../src/acp/client/questions.ts";
import { excerpt } from "../../../src/base/text/excerpt.ts";
import { silentLog } from "../../../src/base/log.ts";
import { parseDiagnostics, toProblems } from "../../../src/lsp/problems.ts";
import { toElicitation } from "../../../src/mcp/questions/elicitation.ts";
import { parseErrorAnswer } from "../../../src/model/failure.ts";
import { newSessionId } from "../../../src/message/ids.ts";

const long = "x".repeat(12_000);

test("reports how much of a shortened text is missing, and keeps other texts unchanged", () => {
  expect(excerpt("short", 5)).toBe("short");
  expect(excerpt("longer", 4)).toBe("long… (2 characters more)");
});

test("a user's long answer reaches the model with a note about the truncated part", async () => {
  const answer = { action: "accept", content: { question_1: "", question_1_custom: long } };
  const requests = {
    elicit: async () => answer,
    permission: async () => undefined,
    completeElicitation: async () => {},
    authStatus: async () => {},
  };
  const question = { question: "Which?", header: "Which", multiple: false, options: [] };
  const deps = { requests, features: { forms: true }, log: silentLog };
  const inquiry = { callId: "1", tool: "question", questions: [question] };
  expect(await askQuestions(deps, newSessionId(), inquiry, new AbortController().signal)).toEqual({
    outcome: "answered",
    answers: [{ chosen: [], custom: excerpt(long, 10_000) }],
  });
});

test("truncated messages of a provider and of a language server say so", () => {
  const notice = parseErrorAnswer({ status: 500, header: () => null, body: long, now: 0 });
  expect(notice.message).toContain(excerpt(long, 1_000));
  const range = { start: { line: 0, character: 0 } };
  expect(toProblems("/a.ts", "text", parseDiagnostics([{ range, message: long }]), "utf-16")).toMatchObject([
    { message: excerpt(long, 500) },
  ]);
});

test("a form too long to show asks only for its visible part, and says so", () => {
  const names = Array.from({ length: 33 }, (_, at) => `field${at}`);
  const requested = toElicitation(
    "shop",
    {
      message: "Who are you?",
      requestedSchema: {
        type: "object",
        properties: Object.fromEntries(names.map((name) => [name, { type: "string" as const }])),
        required: ["field0", "field32"],
      },
    },
    undefined,
  );
  expect(requested).toEqual({
    server: "shop",
    message: "Who are you?\n(It asks for 3 more fields, which are not shown.)",
    callId: undefined,
    mode: "form",
    form: {
      fields: Object.fromEntries(names.slice(0, 30).map((name) => [name, { type: "string" }])),
      required: ["field0"],
    },
  });
});
