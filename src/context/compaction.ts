import form from "../../prompts/compaction.md";
import goOn from "../../prompts/reminders/compacted.md";
import pause from "../../prompts/reminders/summarise.md";
import { estimateHead, estimateMessage, estimateMessages } from "../message/estimate-request.ts";
import type { Emit } from "../message/event.ts";
import { newPartId } from "../message/ids.ts";
import type { AgentError, AssistantInfo, Message, SentRequest, UserInfo } from "../message/message.ts";
import { estimateText } from "../message/estimate.ts";
import type { Carried, CompactionPart, Tokens } from "../message/part.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import type { Jobs } from "../tool/job/jobs.ts";
import type { TodoList } from "../tool/tool.ts";
import { addReminder } from "../conversation/add-reminder.ts";
import { type CarryLimits, carryOver, listRequestTexts } from "./carry-over.ts";
import { startsTurn } from "../message/starts-turn.ts";
import { getUsableWindow } from "./context-budget.ts";
import { askAboutConversation, assumedWindow, createUserMessage } from "./conversation-text.ts";
import { askModel, type ModelAnswer } from "./model-answer.ts";
import type { Project } from "../conversation/project.ts";
import { isStep, prune, shortenStep } from "./prune.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { fill } from "../conversation/reminders.ts";
import { addTokens, noTokens } from "../conversation/turn-result.ts";
import { compactionOf, isFinishedSummary, verbatimMessages } from "../conversation/visible-messages.ts";

/** Target share of the usable window for a request after a compaction. */
const leftShare = 0.6;
/** In a small window, a compaction must save at least this share of what it can save. */
const minSavedShare = 0.5;
/** Limits of the newest messages that stay verbatim: share of the usable window, and tokens. */
const tailShare = 0.25;
const longestTail = 15_000;
/** Minimum bytes for each output of the newest step. */
const minTailBytes = 2 * 1024;
/** Expected size of a summary: share of the usable window, and maximum tokens. */
const summaryShare = 0.05;
const longestSummary = 2_000;
/** Room for the answer to a request for a summary: share of the window, and maximum tokens. */
const answerShare = 1 / 8;
/** Factor by which the estimated size of the conversation may be too low. */
const sizeError = 1.05;
const longestAnswer = 4_000;
/** Shares of the window for the user's earlier messages and for loaded skills. */
const requestsShare = 0.1;
const skillsShare = 0.1;
/** Maximum tokens of loaded skills, regardless of window size. */
const maxSkillTokens = 25_000;
/** Share of the free window for both together. */
const carriedShare = 0.5;

export interface CompactingDeps {
  project: Project;
  transcript: Transcript;
  todos: Pick<TodoList, "read">;
  jobs: Pick<Jobs, "all">;
  emit: Emit;
  /** Resolves when the client can receive more. */
  waitUntilReady(): Promise<void>;
}

/** The model and request parts that a compaction plans for. */
export interface CompactionTarget {
  model: Model;
  /** The conversation's next request without its messages; it forbids tool calls. */
  request: Omit<ModelRequest, "model" | "messages" | "signal">;
  /** Estimated tokens of the conversation's next request. */
  size: number;
  /** That request compared with earlier ones. */
  sent: SentRequest;
}

export type CompactionOutcome =
  /** `left` are the estimated tokens of the next request. */
  | { outcome: "compacted"; tokens: Tokens; cost: number; left: number }
  | { outcome: "cancelled" }
  | { outcome: "failed"; error: AgentError };

/** Writes the requested summary, then shows only it and the newest messages. */
export async function compact(
  deps: CompactingDeps,
  message: Message,
  target: CompactionTarget,
  signal: AbortSignal,
): Promise<CompactionOutcome> {
  const { transcript } = deps;
  const { model } = target;
  const plan = planCompaction(deps, message, target);
  await transcript.amendParts(message.info.id, [plan.part]);
  const { remaining } = plan;
  const info = summaryInfo(transcript, plan.info, model);
  transcript.addMessage(info);
  const { sessionId } = transcript;
  const onText = (delta: string) =>
    deps.emit({ sessionId, type: "summary", messageId: info.parentId, delta });
  const answer = await summarize(deps, { ...plan, target, onText }, signal);
  if (answer.outcome === "failed") {
    await transcript.complete({
      ...info,
      finish: signal.aborted ? "cancelled" : "error",
      error: answer.error,
    });
    return signal.aborted ? { outcome: "cancelled" } : answer;
  }
  const { text, tokens, cost, sent } = answer;
  transcript.putPart(info.id, { id: newPartId(), type: "text", text });
  await transcript.complete({ ...info, finish: "stop", tokens, cost, ...(sent && { sent }) });
  const summary = transcript.find(info.id);
  transcript.show([message, ...(summary ? [summary] : []), ...remaining]);
  const fixed = estimateHead(target.request);
  await shortenTail(deps, remaining, fixed, plan.most);
  if (plan.part.auto) await addReminder(transcript, plan.info, goOn.trim());
  const left = fixed + estimateMessages(transcript.messages);
  const { size } = target;
  await transcript.amendParts(message.info.id, [{ ...plan.part, size, left }]);
  deps.emit({ sessionId, type: "compacted", messageId: message.info.id, size, left });
  return { outcome: "compacted", tokens, cost, left };
}

/** Selects the messages to keep, to summarize and to carry over. */
function planCompaction(
  { project, transcript, todos, jobs }: CompactingDeps,
  message: Message,
  target: CompactionTarget,
) {
  const { info } = message;
  const requested = compactionOf(message);
  if (info.role !== "user" || requested === undefined) throw new Error("not a compaction");
  const usable = getUsableWindow(target.model, project.config) ?? assumedWindow;
  const others = transcript.messages.filter((other) => other !== message);
  const question = requested.auto ? others.findLast(startsTurn) : undefined;
  const free = Math.max(0, usable - estimateHead(target.request));
  const limits = createCarryLimits(target.model.limit.context ?? assumedWindow, free);
  const { cwd } = project.workspace;
  const carry = (remaining: readonly Message[]): Carried => {
    const replaced = others.filter((other) => !remaining.includes(other));
    return carryOver({ replaced, remaining, todos: todos.read(), jobs: jobs.all, cwd }, limits);
  };
  const first = question === undefined ? [] : [question];
  const carried = { ...requested, carried: carry(first) };
  const fixed = usable - free + estimateMessages(first) + estimateMessage({ info, parts: [carried] });
  const most = Math.max(usable * leftShare, fixed + (usable - fixed) * (1 - minSavedShare));
  const expected = Math.min(usable * summaryShare, longestSummary);
  const tail = Math.min(longestTail, usable * tailShare, most - fixed - expected);
  const keepFrom = findKeepFrom(others, tail, question);
  const planned = {
    ...requested,
    ...(keepFrom && { keepFrom }),
    ...(question && { question: question.info.id }),
  };
  const remaining = verbatimMessages({ info, parts: [planned] }, others);
  const replaced = others.filter((other) => !remaining.includes(other));
  const [request] = question === undefined ? [] : listRequestTexts(question);
  const part = { ...planned, carried: carry(remaining) };
  return { info, part, request, messages: others, remaining, replaced, most };
}

function createCarryLimits(window: number, free: number): CarryLimits {
  const requests = Math.min(window * requestsShare, free * carriedShare);
  const skills = Math.min(window * skillsShare, maxSkillTokens, free * carriedShare - requests);
  return { requests, skills };
}

/**
 * Finds the first of the newest messages that fit. If all fit, none stays, because that would save nothing. After a
 * question, the newest of several steps always stays: the model has not seen its results.
 */
function findKeepFrom(messages: readonly Message[], mostTokens: number, question: Message | undefined) {
  const questionIndex = question === undefined ? Number.POSITIVE_INFINITY : messages.indexOf(question);
  const fitting = findOldestFitting(messages, mostTokens);
  const isAll = fitting === messages.findLastIndex(isFinishedSummary) + 1;
  const step = messages.findLastIndex(isStep);
  const isWorthKeeping = step > questionIndex && messages.slice(questionIndex + 1, step).some(isStep);
  const from = Math.min(isAll ? messages.length : fitting, isWorthKeeping ? step : messages.length);
  const isStart = ({ info }: Message, index: number) => info.role === "user" || index > questionIndex;
  return messages.find((message, index) => index >= from && isStart(message, index))?.info.id;
}

/** Returns the index of the oldest message that fits. Stops at an older compaction. */
function findOldestFitting(messages: readonly Message[], mostTokens: number): number {
  let size = 0;
  const tooOld = messages.findLastIndex((message) => {
    size += estimateMessage(message);
    return size > mostTokens || isFinishedSummary(message);
  });
  return tooOld + 1;
}

/** Shortens the remaining messages if the summary is longer than expected: first older outputs, then the newest step's. */
async function shortenTail(
  { transcript, project }: CompactingDeps,
  remaining: readonly Message[],
  fixed: number,
  most: number,
): Promise<void> {
  const over = () => fixed + estimateMessages(transcript.messages) - most;
  if (over() > 0)
    await prune(transcript, { keepTurns: 0, keepTokens: 0, leastTokens: 1, keepsNewestStep: true });
  const step = remaining.findLast(isStep);
  if (step === undefined || over() <= 0) return;
  const mostTokens = Math.max(0, estimateMessage(step) - over());
  const folder = project.workspace.outputFolder;
  await shortenStep(transcript, step, { mostTokens, leastBytes: minTailBytes, folder });
}

function summaryInfo(transcript: Transcript, question: UserInfo, model: Model): AssistantInfo {
  return {
    id: transcript.newMessageId(),
    sessionId: question.sessionId,
    role: "assistant",
    parentId: question.id,
    time: { created: Date.now() },
    agent: "compaction",
    model: model.ref,
    cost: 0,
    tokens: noTokens,
    summary: true,
  };
}

interface SummaryInput {
  target: CompactionTarget;
  part: CompactionPart;
  /** The conversation, without the request for the compaction. */
  messages: readonly Message[];
  /** The messages that the summary replaces. */
  replaced: readonly Message[];
  /** The user's unanswered request. */
  request: string | undefined;
  onText(text: string): void;
}

/**
 * Asks for the summary in the conversation itself, so that the provider reads its prompt cache. A conversation that does
 * not fit, or that the provider rejects, is sent as shortened text instead.
 */
async function summarize(
  deps: CompactingDeps,
  input: SummaryInput,
  signal: AbortSignal,
): Promise<ModelAnswer & { sent?: SentRequest }> {
  const { instruction } = input.part;
  const end =
    instruction === undefined ? form : `${form}\n\nThe user's instructions for this summary: ${instruction}`;
  const answer = await askInConversation(deps, input, end, signal);
  if (answer !== undefined && (signal.aborted || !mayHelpToShorten(answer)))
    return { ...answer, sent: input.target.sent };
  const { replaced: messages, request, target } = input;
  const onText = (text: string) => input.onText(text);
  const waitUntilReady = () => deps.waitUntilReady();
  const question = { agent: "compaction", model: target.model, messages, request, end, onText };
  const asked = { ...question, waitUntilReady };
  const second = assertNotEmpty(await askAboutConversation(deps.project, asked, signal));
  return answer === undefined ? second : addUsage(second, answer);
}

/** Continues the conversation with the request for a summary. Returns undefined if that does not fit. */
async function askInConversation(
  deps: CompactingDeps,
  input: SummaryInput,
  end: string,
  signal: AbortSignal,
): Promise<ModelAnswer | undefined> {
  const { target, messages } = input;
  const { model, request, size } = target;
  const { models, retryPolicy, agents } = deps.project;
  const instructions = agents.get("compaction")?.prompt ?? "";
  const text = fill(pause, { instructions: instructions.trim(), form: end.trim() }).trim();
  const promptTokens = Math.ceil((size + estimateText(text)) * sizeError);
  const { context = Number.POSITIVE_INFINITY } = model.limit;
  if (promptTokens + Math.min(context * answerShare, longestAnswer) > context) return undefined;
  const last = createUserMessage(text, { agent: "compaction", synthetic: true });
  const asked = { ...request, model, messages: [...messages, last], promptTokens, signal };
  const onText = (delta: string) => input.onText(delta);
  return askModel({ models, retryPolicy, onText }, { ...asked, waitUntilReady: () => deps.waitUntilReady() });
}

/** Whether a conversation as plain text may have more success. */
function mayHelpToShorten(answer: ModelAnswer): boolean {
  if (answer.outcome === "answered") return answer.text.trim() === "";
  return answer.error.code === "context-length" || answer.error.code === "bad-request";
}

function addUsage(answer: ModelAnswer, other: ModelAnswer): ModelAnswer {
  if (answer.outcome === "failed" || other.outcome === "failed") return answer;
  return { ...answer, tokens: addTokens(answer.tokens, other.tokens), cost: answer.cost + other.cost };
}

/** Rejects an empty summary, which would lose the conversation. */
function assertNotEmpty(answer: ModelAnswer): ModelAnswer {
  if (answer.outcome === "failed" || answer.text.trim() !== "") return answer;
  const message = "The model returned an empty summary. Try /compact again or use another model.";
  return { outcome: "failed", error: { code: "invalid-response", message, retryable: false } };
}
