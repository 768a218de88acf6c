import { errorFields } from "../../base/error-fields.ts";
import type { ElicitationPropertySchema, RequestPermissionRequest } from "@agentclientprotocol/sdk/unstable";
import { z } from "zod";
import { sentenceOf } from "../../base/errors.ts";
import { excerpt } from "../../base/text/excerpt.ts";
import type { Log } from "../../base/log.ts";
import type { Inquiry, InquiryAnswer, InquiryOutcome, InquiryQuestion } from "../../message/inquiry.ts";
import type { SessionId } from "../../message/ids.ts";
import { showInvisible } from "../../base/text/invisible.ts";
import type { ClientRequests, SessionElicitation } from "./requester.ts";
import type { ClientFeatures } from "../client-capabilities.ts";
import { limitName } from "../view/card-limits.ts";
import { textContent } from "../view/tool-calls.ts";

export interface QuestionDeps {
  requests: ClientRequests;
  features: Pick<ClientFeatures, "forms">;
  log: Log;
}

/** Maximum number of answers in a permission prompt. */
const promptOptionLimit = 4;
/** Maximum characters of a free-text answer. */
const customLimit = 10_000;
const skip = "skip";
/** Outcome of a response that cannot be interpreted. */
const invalidAnswer: InquiryOutcome = {
  outcome: "unavailable",
  problem: "The editor's answer is not one of the options.",
};

/**
 * Asks the user with a form or, for one single-choice question, with a permission prompt. Never rejects: errors resolve
 * to `unavailable`, an aborted signal to `cancelled`.
 */
export async function askQuestions(
  deps: QuestionDeps,
  sessionId: SessionId,
  inquiry: Inquiry,
  signal: AbortSignal,
): Promise<InquiryOutcome> {
  try {
    if (deps.features.forms) return await askByForm(deps.requests, sessionId, inquiry, signal);
    const { callId, tool, questions } = inquiry;
    const [question, ...others] = questions;
    if (question === undefined || others.length > 0 || !fitsPrompt(question))
      return { outcome: "unavailable" };
    return await askByPrompt(deps.requests, { sessionId, callId, tool, question }, signal);
  } catch (error) {
    if (signal.aborted) return { outcome: "cancelled" };
    deps.log.warn("question failed", { sessionId, ...errorFields(error) });
    return { outcome: "unavailable", problem: sentenceOf(error) };
  }
}

const formResponseSchema = z.looseObject({
  action: z.string(),
  content: z.record(z.string(), z.unknown()).nullish(),
});

async function askByForm(
  requests: ClientRequests,
  sessionId: SessionId,
  inquiry: Inquiry,
  signal: AbortSignal,
): Promise<InquiryOutcome> {
  const response = formResponseSchema.safeParse(await requests.elicit(toForm(sessionId, inquiry), signal));
  switch (response.data?.action) {
    case "accept":
      return { outcome: "answered", answers: toAnswers(inquiry.questions, response.data.content ?? {}) };
    case "decline":
      return { outcome: "declined" };
    case "cancel":
      return { outcome: "closed" };
    default:
      return invalidAnswer;
  }
}

function toForm(sessionId: SessionId, { callId, questions }: Inquiry): SessionElicitation {
  const [first] = questions;
  const message = questions.length === 1 && first ? first.question : `${questions.length} questions`;
  return {
    sessionId,
    mode: "form",
    toolCallId: callId,
    message: showInvisible(message),
    requestedSchema: { type: "object", properties: Object.assign({}, ...questions.map(createFields)) },
  };
}

/** Creates a choice field and a text field. Neither is required. */
function createFields(question: InquiryQuestion, index: number): Record<string, ElicitationPropertySchema> {
  const name = fieldName(index);
  return {
    [name]: createChoiceField(question),
    [`${name}_custom`]: {
      type: "string",
      title: `${showInvisible(question.header)}: another answer`,
      description: "Free text, if none of the options fits.",
      _meta: { _askUserQuestionCustomAnswer: { questionId: name } },
    },
  };
}

function createChoiceField({
  question,
  header,
  options,
  multiple,
}: InquiryQuestion): ElicitationPropertySchema {
  const shown = { title: showInvisible(header), description: showInvisible(question) };
  const choices = options.map(({ label, description }) => ({
    const: label,
    title: showInvisible(description === "" ? label : `${label} — ${description}`),
  }));
  if (multiple) return { type: "array", ...shown, items: { anyOf: choices } };
  return { type: "string", ...shown, oneOf: choices };
}

function fieldName(index: number): string {
  return `question_${index + 1}`;
}

function toAnswers(
  questions: readonly InquiryQuestion[],
  content: Readonly<Record<string, unknown>>,
): InquiryAnswer[] {
  return questions.map((question, index) => {
    const name = fieldName(index);
    return toAnswer(question, [content[name]].flat(), content[`${name}_custom`]);
  });
}

/** Values that are not options are free text: some clients have one field for both. */
function toAnswer({ options }: InquiryQuestion, values: readonly unknown[], written: unknown): InquiryAnswer {
  const labels = options.map(({ label }) => label);
  const chosen = labels.filter((label) => values.includes(label));
  const others = [...values, written].filter((value) => typeof value === "string");
  const custom = excerpt(
    others.filter((text) => text.trim() !== "" && !labels.includes(text)).join("; "),
    customLimit,
  );
  return custom === "" ? { chosen } : { chosen, custom };
}

function fitsPrompt({ options, multiple }: InquiryQuestion): boolean {
  return !multiple && options.length <= promptOptionLimit;
}

const promptResponseSchema = z.looseObject({
  outcome: z.looseObject({ outcome: z.string(), optionId: z.string().nullish() }),
});

interface PromptedQuestion {
  readonly sessionId: SessionId;
  readonly callId: string;
  readonly tool: string;
  readonly question: InquiryQuestion;
}

async function askByPrompt(
  requests: ClientRequests,
  prompted: PromptedQuestion,
  signal: AbortSignal,
): Promise<InquiryOutcome> {
  const response = promptResponseSchema.safeParse(await requests.permission(toPrompt(prompted), signal));
  const outcome = response.data?.outcome;
  if (outcome?.outcome === "cancelled") return { outcome: "cancelled" };
  if (outcome?.outcome !== "selected") return invalidAnswer;
  const chosen = prompted.question.options.find((_, index) => optionId(index) === outcome.optionId);
  if (chosen !== undefined) return { outcome: "answered", answers: [{ chosen: [chosen.label] }] };
  return outcome.optionId === skip ? { outcome: "declined" } : invalidAnswer;
}

function toPrompt({ sessionId, callId, tool, question }: PromptedQuestion): RequestPermissionRequest {
  const answers = question.options.map(({ label }, index) => ({
    optionId: optionId(index),
    name: showInvisible(label),
    kind: "allow_once" as const,
  }));
  return {
    sessionId,
    toolCall: {
      toolCallId: callId,
      title: showInvisible(question.question),
      kind: "other",
      status: "in_progress",
      content: [textContent(showInvisible(describeOptions(question)))],
      _meta: { tool_name: limitName(tool) },
    },
    options: [...answers, { optionId: skip, name: "Skip", kind: "reject_once" }],
  };
}

function describeOptions({ question, options }: InquiryQuestion): string {
  const lines = options.map(({ label, description }) =>
    description === "" ? `- ${label}` : `- ${label}: ${description}`,
  );
  return [question, "", ...lines].join("\n");
}

function optionId(index: number): string {
  return `answer_${index + 1}`;
}
