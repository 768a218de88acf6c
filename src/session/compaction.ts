import form from "../../prompts/compaction.md";
import goOn from "../../prompts/reminders/compacted.md";
import type { Room } from "../base/async.ts";
import { newPartId } from "../message/ids.ts";
import type { Emit } from "../message/event.ts";
import type { AgentError, AssistantInfo, Message, UserInfo } from "../message/message.ts";
import type { Tokens } from "../message/part.ts";
import type { Model } from "../model/model.ts";
import { estimateMessage, estimateMessages, usableWindow } from "./context-budget.ts";
import { askAboutConversation, assumedWindow } from "./conversation-text.ts";
import type { ModelAnswer } from "./model-answer.ts";
import type { Project } from "./project.ts";
import { findPrunable, type PruneLimits, pruneLimits } from "./prune.ts";
import type { Transcript } from "./transcript.ts";
import { noTokens } from "./turn-result.ts";
import { compactionOf, isFinishedSummary, keptBy } from "./visible-messages.ts";

/** Share of the usable window that the newest messages may keep verbatim, between these bounds (system.md 4). */
const tailShare = 0.25;
const shortestTail = 2_000;
const longestTail = 15_000;
/** A summary that leaves more than this share of what there was has not helped. */
const leastProgress = 0.9;

export interface CompactionDeps {
  project: Project;
  transcript: Transcript;
}

export type CompactionOutcome =
  | { outcome: "compacted"; tokens: Tokens; cost: number; hasShrunk: boolean }
  | { outcome: "cancelled" }
  | { outcome: "failed"; error: AgentError };

export interface CompactionWish {
  auto: boolean;
  /** What the person wrote to ask for it. */
  said?: string;
  instruction?: string;
  model: Model | undefined;
}

/** Puts the wish to compact into the transcript, where the loop finds it. */
export async function requestCompaction(
  { transcript, project }: CompactionDeps,
  question: UserInfo,
  wish: CompactionWish,
): Promise<void> {
  if (project.config.compaction?.prune !== false) await prune(transcript, pruneLimits);
  const window = wish.model && usableWindow(wish.model, project.config);
  const tail = tailOf(transcript.messages, window ?? assumedWindow, wish.auto);
  const info: UserInfo = { ...question, id: transcript.newMessageId(), time: { created: Date.now() } };
  await transcript.addMessage(info);
  if (wish.said !== undefined) {
    await transcript.putPart(info.id, { id: newPartId(), type: "text", text: wish.said, ignored: true });
  }
  await transcript.putPart(info.id, {
    id: newPartId(),
    type: "compaction",
    auto: wish.auto,
    ...(wish.instruction && { instruction: wish.instruction }),
    ...tail,
  });
  await transcript.seal(info.id);
}

/** Writes the summary that the message asks for, and leaves only it and the newest messages visible. */
export async function compact(
  deps: CompactionDeps & { emit: Emit },
  message: Message,
  model: Model,
  signal: AbortSignal,
): Promise<CompactionOutcome> {
  const { transcript } = deps;
  const part = compactionOf(message);
  if (message.info.role !== "user" || part === undefined) throw new Error("not a compaction");
  const before = estimateMessages(transcript.messages);
  const kept = keptBy(message, transcript.messages);
  const old = transcript.messages.filter((other) => other !== message && !kept.includes(other));
  const info = summaryInfo(transcript, message.info, model);
  await transcript.addMessage(info);
  const { sessionId } = transcript;
  const onText = (delta: string) =>
    deps.emit({ sessionId, type: "summary", messageId: info.parentId, delta });
  const material = { model, messages: old, instruction: part.instruction, onText };
  const answer = await summarise(deps, material, signal);
  if (answer.outcome === "failed") {
    await transcript.complete({
      ...info,
      finish: signal.aborted ? "cancelled" : "error",
      error: answer.error,
    });
    return signal.aborted ? { outcome: "cancelled" } : answer;
  }
  const { text, tokens, cost } = answer;
  await transcript.putPart(info.id, { id: newPartId(), type: "text", text });
  await transcript.complete({ ...info, finish: "stop", tokens, cost });
  const summary = transcript.find(info.id);
  transcript.show([message, ...(summary ? [summary] : []), ...kept]);
  if (part.auto) await continueAfter(transcript, message.info);
  const hasShrunk = estimateMessages(transcript.messages) <= before * leastProgress;
  return { outcome: "compacted", tokens, cost, hasShrunk };
}

/** Takes old outputs out of the model's view, not out of the person's. Answers whether there were any. */
export async function prune(transcript: Transcript, limits: PruneLimits): Promise<boolean> {
  const prunable = findPrunable(transcript.messages, limits);
  const compactedAt = Date.now();
  for (const [messageId, found] of Map.groupBy(prunable, (one) => one.messageId)) {
    const parts = found.map(({ part }) => ({ ...part, state: { ...part.state, compactedAt } }));
    await transcript.amendParts(messageId, parts);
  }
  return prunable.length > 0;
}

/**
 * The newest messages that fit, and the unanswered question itself, however old it is. Where all would fit, keeping
 * them would win nothing: then they are summed up too.
 */
function tailOf(messages: readonly Message[], window: number, keepsQuestion: boolean) {
  const limit = Math.min(longestTail, Math.max(shortestTail, Math.round(window * tailShare)));
  const question = keepsQuestion ? messages.findLastIndex(isAsked) : -1;
  const isStart = ({ info }: Message, index: number) =>
    info.role === "user" || (question !== -1 && index > question);
  const fitting = newestThatFit(messages, limit);
  const isAll = fitting === messages.findLastIndex(isFinishedSummary) + 1;
  const keepFrom = isAll
    ? undefined
    : messages.find((message, index) => index >= fitting && isStart(message, index));
  return {
    ...(keepFrom && { keepFrom: keepFrom.info.id }),
    ...(question !== -1 && { question: messages[question]?.info.id }),
  };
}

/** The index from which on the messages have at most so many tokens. An older compaction is no part of a tail. */
function newestThatFit(messages: readonly Message[], limit: number): number {
  let size = 0;
  const tooOld = messages.findLastIndex((message) => {
    size += estimateMessage(message);
    return size > limit || isFinishedSummary(message);
  });
  return tooOld + 1;
}

/** A message of the person's own, not one that the program wrote. */
function isAsked({ info, parts }: Message): boolean {
  if (info.role !== "user") return false;
  return parts.some((part) => part.type === "text" && part.synthetic !== true && part.ignored !== true);
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

/** An automatic compaction came in the middle of work, which goes on. */
async function continueAfter(transcript: Transcript, question: UserInfo): Promise<void> {
  const info: UserInfo = { ...question, id: transcript.newMessageId(), time: { created: Date.now() } };
  await transcript.addMessage(info);
  await transcript.putPart(info.id, { id: newPartId(), type: "text", text: goOn.trim(), synthetic: true });
  await transcript.seal(info.id);
}

interface Material {
  model: Model;
  messages: readonly Message[];
  instruction: string | undefined;
  onText(text: string): Room;
}

async function summarise({ project }: CompactionDeps, material: Material, signal: AbortSignal) {
  const { model, messages, instruction } = material;
  const end = instruction === undefined ? form : `${form}\n\nThe person asks of this summary: ${instruction}`;
  const onText = (text: string) => material.onText(text);
  const asked = { agent: "compaction", model, messages, end, onText };
  return nonEmpty(await askAboutConversation(project, asked, signal));
}

/** Nothing must be forgotten for an empty summary. */
function nonEmpty(answer: ModelAnswer): ModelAnswer {
  if (answer.outcome === "failed" || answer.text.trim() !== "") return answer;
  const message =
    "The model wrote no summary of the conversation. Try /compact again, perhaps with another model.";
  return { outcome: "failed", error: { code: "invalid-response", message, retryable: false } };
}
