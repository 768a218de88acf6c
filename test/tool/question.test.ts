import { describe, expect, test } from "vitest";
import type { Inquiry, InquiryOutcome } from "../../src/message/inquiry.ts";
import { questionTool } from "../../src/tool/question.ts";
import { description, prepare, run, toolPlace } from "./tool-place.ts";

const options = [
  { label: "SQLite", description: "One file" },
  { label: "Postgres", description: "A server" },
];
const database = { question: "Which database?", header: "Database", options };
const features = { question: "Which features?", header: "Features", options, multiple: true };

/** Returns the text that the model receives after this answer, and the question to the user. */
async function answered(questions: readonly unknown[], outcome: InquiryOutcome) {
  await using place = await toolPlace();
  const requested: Inquiry[] = [];
  const inquire = async (inquiry: Inquiry) => {
    requested.push(inquiry);
    return outcome;
  };
  const asking = { ...place, context: { ...place.context, inquire } };
  const result = await run(await prepare(questionTool, { questions }, asking), asking);
  return { result, asked: requested };
}

describe("question", () => {
  test("describes one question by its text and several by their headers", async () => {
    await using place = await toolPlace();
    expect(await description(questionTool, { questions: [database] }, place)).toEqual({
      title: "Which database?",
      kind: "other",
      locations: [],
      permissions: [{ permission: "question", subjects: [{ text: "*" }], always: ["*"] }],
    });
    const both = await description(questionTool, { questions: [database, features] }, place);
    expect(both.title).toBe("2 questions: Database, Features");
  });

  test("asks all questions under its call and returns the answers as text", async () => {
    const { result, asked: requested } = await answered(
      [database, features, { ...database, question: "And then?" }],
      {
        outcome: "answered",
        answers: [
          { chosen: ["SQLite"] },
          { chosen: ["SQLite", "Postgres"], custom: "and a cache" },
          { chosen: [] },
        ],
      },
    );
    expect(requested).toEqual([
      {
        callId: "call",
        tool: "question",
        questions: [
          { ...database, multiple: false },
          features,
          { ...database, question: "And then?", multiple: false },
        ],
      },
    ]);
    expect(result).toEqual({
      status: "completed",
      output: [
        "The user answered:",
        "- Which database?",
        '  "SQLite"',
        "- Which features?",
        '  "SQLite", "Postgres"; in their own words: and a cache',
        "- And then?",
        "  No answer. Decide yourself and name what you assumed.",
      ].join("\n"),
    });
  });

  test("continues if skipped, stops if closed, and asks for text if it cannot be shown", async () => {
    expect((await answered([database], { outcome: "declined" })).result).toEqual({
      status: "completed",
      output: expect.stringContaining("The user skipped this. Go on without an answer"),
    });
    expect((await answered([database], { outcome: "closed" })).result).toEqual({
      status: "failed",
      error: "The user closed the question without an answer.",
      stop: "rejected",
    });
    expect((await answered([database], { outcome: "unavailable" })).result).toEqual({
      status: "completed",
      output: expect.stringMatching(/^Nobody was asked: .* end your turn\.$/),
    });
  });

  test.each([
    ["no question", []],
    ["nine questions", Array.from({ length: 9 }, () => database)],
    ["a header of 31 characters", [{ ...database, header: "x".repeat(31) }]],
    ["no options", [{ ...database, options: [] }]],
    [
      "thirteen options",
      [{ ...database, options: Array.from({ length: 13 }, (_, at) => ({ label: `${at}` })) }],
    ],
    ["the same label twice", [{ ...database, options: [options[0], options[0]] }]],
  ])("does not accept %s", (_, questions) => {
    expect(questionTool.input.safeParse({ questions }).success).toBe(false);
  });
});
