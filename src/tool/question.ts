import { shortenTitle } from "../base/text/call-titles.ts";
import { z } from "zod";
import description from "../../prompts/tools/question.md";
import type { InquiryAnswer, InquiryOutcome, InquiryQuestion } from "../message/inquiry.ts";
import { defineTool } from "./tool.ts";
import type { ToolResult } from "./tool.ts";

const questionLimit = 8;
const optionLimit = 12;
const headerLimit = 30;
/** Characters of a label, and of a question or a description; the editor's panel is narrow. */
const labelLimit = 200;
const textLimit = 2_000;

const optionSchema = z.object({
  label: z.string().trim().min(1).max(labelLimit).describe("The answer in a few words"),
  description: z.string().max(textLimit).default("").describe("What it means or costs"),
});

const questionSchema = z.object({
  question: z.string().trim().min(1).max(textLimit).describe("The whole question"),
  header: z.string().trim().min(1).max(headerLimit).describe("Names the question, at most 30 characters"),
  options: z
    .array(optionSchema)
    .min(1)
    .max(optionLimit)
    .refine((options) => new Set(options.map(({ label }) => label)).size === options.length, {
      message: "Two options have the same label",
    })
    .describe("Answers to choose from"),
  multiple: z.boolean().optional().describe("Whether several may be chosen together; false when left out"),
});

const inputSchema = z.object({
  questions: z.array(questionSchema).min(1).max(questionLimit).describe("What to ask, all at once"),
});
type Input = z.infer<typeof inputSchema>;

const name = "question";

export const questionTool = defineTool<Input>({
  name,
  otherNames: ["ask_user", "ask_user_question", "ask_followup_question", "ask_question"],
  description,
  input: inputSchema,
  kind: "other",
  concurrency: "exclusive",
  async prepare(input, context) {
    const questions = input.questions.map((question) => ({
      ...question,
      multiple: question.multiple === true,
    }));
    return {
      title: titleOf(questions),
      locations: [],
      permissions: [{ permission: name, subjects: [{ text: "*" }], always: ["*"] }],
      run: async ({ callId, signal }) =>
        toResult(questions, await context.inquire({ callId, tool: name, questions }, signal)),
    };
  },
});

function titleOf(questions: readonly InquiryQuestion[]): string {
  const [first] = questions;
  const title =
    questions.length === 1 && first !== undefined
      ? first.question
      : `${questions.length} questions: ${questions.map(({ header }) => header).join(", ")}`;
  return shortenTitle(title);
}

function toResult(questions: readonly InquiryQuestion[], inquiry: InquiryOutcome): ToolResult {
  switch (inquiry.outcome) {
    case "answered":
      return { status: "completed", output: describeAnswers(questions, inquiry.answers) };
    case "declined":
      return {
        status: "completed",
        output:
          "The user skipped this. Go on without an answer: take the most sensible assumption and name it.",
      };
    case "closed":
      return {
        status: "failed",
        error: "The user closed the question without an answer.",
        stop: "rejected",
      };
    case "cancelled":
      return { status: "failed", error: "The user cancelled the turn.", stop: "cancelled" };
    case "unavailable":
      if (inquiry.problem !== undefined)
        return {
          status: "failed",
          error: `Nobody was asked: ${inquiry.problem} Take the most sensible assumption and name it. If there is none, put the question into your answer as text, with its options, and end your turn.`,
        };
      return {
        status: "completed",
        output:
          "Nobody was asked: this editor cannot show such a question. Put it into your message as text, with its options, and end your turn.",
      };
  }
}

function describeAnswers(questions: readonly InquiryQuestion[], answers: readonly InquiryAnswer[]): string {
  const lines = questions.map(({ question }, index) => `- ${question}\n  ${describeAnswer(answers[index])}`);
  return ["The user answered:", ...lines].join("\n");
}

function describeAnswer(answer: InquiryAnswer | undefined): string {
  const chosen = answer?.chosen.map((label) => `"${label}"`).join(", ") ?? "";
  const custom = answer?.custom === undefined ? "" : `in their own words: ${answer.custom}`;
  if (chosen === "" && custom === "") return "No answer. Decide yourself and name what you assumed.";
  return [chosen, custom].filter((text) => text !== "").join("; ");
}
