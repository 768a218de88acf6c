import {
  estimateHead,
  estimateMessage,
  estimateMessages,
  estimateOutput,
  estimateRequest,
  type RequestHead,
} from "../message/estimate-request.ts";
import type { AgentError, Message } from "../message/message.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import { outputLimitBytes } from "../tool/output-limit.ts";
import { startsTurn } from "../conversation/checkpoints.ts";
import { bytesPerToken, contextTokens, largestText, usableWindow } from "./context-budget.ts";
import { findPrunable, isStep, prune, type PruneLimits, shortenStep } from "./prune.ts";
import type { Project } from "../conversation/project.ts";
import { leastShareBytes, type ResultLimits } from "./result-budget.ts";
import type { ShownInstructions } from "./shown-instructions.ts";
import type { StepOutcome } from "../conversation/step-outcome.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { compactionOf, isFinishedSummary } from "../conversation/visible-messages.ts";

/** Share of the window that the newest outputs keep when older ones are cleared. */
const keptShare = 0.25;
/** Shares of the usable window, and of what can be cleared of it, that clearing must bring a request under. */
const clearedShare = 0.7;
const clearedRoomShare = 0.6;
/** Share of what can be cleared that the newest outputs may keep in a small window. */
const keptRoomShare = 1 / 3;
/** Steps that a compaction must last; before them outputs are cleared instead. */
const leastSteps = 3;
/** How far the provider's count of tokens may differ from the estimate. */
const mostScale = 1.5;
/** What a refusal adds to it. */
const refusedScale = 1.15;
const leastScale = 0.8;
/** Share of the window that the results of one step may have. */
const stepShare = 0.4;
/** Share of the free part of the window that the results of one step may have at most: notes come on top. */
const freeShare = 0.8;
const leastStepBytes = 4 * 1024;
/** Tokens of the note in place of what was cut of an output, about. */
const noteTokens = 100;
/** Usable tokens below which instructions and tools leave too little for work. */
const smallUsable = 8_000;

export interface WindowGuardDeps {
  project: Project;
  transcript: Transcript;
  shown: ShownInstructions;
}

/** What is to be done before a request, or after one that was too long. */
export type WindowVerdict = "ask" | "compact" | AgentError;

type Request = Pick<ModelRequest, "system" | "tools" | "messages">;

/** Keeps the requests of a turn within the model's window: clears old outputs, asks for compactions, fails in words. */
export class WindowGuard {
  readonly #deps: WindowGuardDeps;
  /** The provider's count of tokens per estimated token, from the newest call; 1 where there was none. */
  #scale = 1;
  #isMeasured = false;

  constructor(deps: WindowGuardDeps) {
    this.#deps = deps;
  }

  /** Learns from a call how many tokens the provider counts. */
  measure(estimated: number, { tokens, isEstimated }: Pick<StepOutcome, "tokens" | "isEstimated">): void {
    const counted = tokens.input + tokens.cache.read + tokens.cache.write;
    if (isEstimated || counted === 0 || estimated === 0) return;
    this.#scale = Math.min(mostScale, Math.max(leastScale, counted / estimated));
    this.#isMeasured = true;
  }

  /** Tokens of a request by what the provider counted; undefined where it has counted nothing yet. */
  promptTokens(request: Request): number | undefined {
    return this.#isMeasured ? this.#sizeOf(request) : undefined;
  }

  /** Makes a request fit before it is sent. */
  async beforeRequest(request: Request, model: Model): Promise<WindowVerdict> {
    const { project } = this.#deps;
    const usable = usableWindow(model, project.config);
    if (usable === undefined || project.config.compaction?.auto === false) return "ask";
    if (this.#sizeOf(request) < usable || (await this.#clear(request, model, usable))) return "ask";
    if (isFirstStep(request.messages)) {
      await this.#shortenNewest(request, usable);
      if (this.#sizeOf(request) < usable) return "ask";
    }
    // There is nothing to sum up: the provider decides whether it fits.
    if (!hasHistory(request.messages)) return "ask";
    if (stepsSinceCompaction(request.messages) >= leastSteps) return "compact";
    await this.#clearAll(request, usable);
    return this.#sizeOf(request) < usable ? "ask" : this.#tooLong(request, model);
  }

  /** Makes room after the provider refused a request as too long: the newest outputs are cut first. */
  async afterRefusal(request: Request, model: Model, error: AgentError): Promise<WindowVerdict> {
    const { project, transcript } = this.#deps;
    if (project.config.compaction?.auto === false) return error;
    // The provider counts more than was estimated, or has a smaller window.
    this.#scale = Math.min(mostScale, this.#scale * refusedScale);
    this.#isMeasured = true;
    if (await this.#halveNewest()) return "ask";
    if (!hasHistory(transcript.messages)) return this.#tooLong(request, model);
    if (stepsSinceCompaction(transcript.messages) >= leastSteps) return "compact";
    return (await this.#prune(hardPruneLimits)) ? "ask" : this.#tooLong(request, model);
  }

  /** How much of the window the results of the next step may take; undefined where it is unknown. */
  resultLimits(request: Request, model: Model): ResultLimits | undefined {
    const { context } = model.limit;
    const usable = usableWindow(model, this.#deps.project.config);
    if (context === undefined || usable === undefined) return undefined;
    const free = usable - this.#scale * fixedTokens(request, request.messages);
    const step = Math.floor(Math.min(context * stepShare, free * freeShare) * bytesPerToken);
    const each = Math.min(outputLimitBytes, largestText(model));
    // One small result is always shown.
    return { each, step: Math.max(leastStepBytes, step) };
  }

  /** Warns of a window that instructions and tools nearly fill; undefined where there is enough room. */
  warningOf(head: RequestHead, model: Model): string | undefined {
    const usable = usableWindow(model, this.#deps.project.config);
    if (usable === undefined || usable >= smallUsable) return undefined;
    return `The context of ${model.name} is too small to work well: instructions and tools take ${thousands(estimateHead(head))} of ${thousands(usable)} usable tokens. ${advice}`;
  }

  /** Tokens of a request: the provider's count of the newest call and what came since, else an estimate. */
  #sizeOf(request: Request): number {
    const { messages } = request;
    return sizeByUsage(messages) ?? Math.round(estimateRequest(request) * this.#scale);
  }

  /** Clears older outputs in one batch, if that makes enough room. */
  async #clear(request: Request, model: Model, usable: number): Promise<boolean> {
    const { messages } = request;
    const step = messages.findLast(isStep);
    const newest = step === undefined ? 0 : outputTokens(step);
    const fixed = this.#scale * (fixedTokens(request, messages) + newest);
    const room = Math.max(0, usable - fixed);
    const window = model.limit.context ?? usable;
    const keepTokens = Math.min(window * keptShare, room * keptRoomShare) / this.#scale;
    const limits = { keepTurns: 0, keepTokens, leastTokens: 1, keepsNewestStep: true };
    const won = findPrunable(messages, limits).reduce((sum, { part }) => sum + estimateOutput(part), 0);
    const most = Math.max(usable * clearedShare, fixed + room * clearedRoomShare);
    if (this.#sizeOf(request) - won * this.#scale > most) return false;
    return this.#prune(limits);
  }

  /** Leaves only what the model has not seen, and of that no more than fits. */
  async #clearAll(request: Request, usable: number): Promise<void> {
    await this.#prune(hardPruneLimits);
    await this.#shortenNewest(request, usable);
  }

  async #shortenNewest(request: Request, usable: number): Promise<void> {
    const { transcript, project } = this.#deps;
    const step = transcript.messages.findLast(isStep);
    const over = this.#sizeOf(request) - usable;
    if (step === undefined || over < 0) return;
    // A size by usage counts outputs as they are estimated, so that a larger scale wins nothing.
    const won = Math.ceil(over / Math.min(1, this.#scale)) + step.parts.length * noteTokens;
    const mostTokens = Math.max(0, outputTokens(step) - won);
    const folder = project.workspace.outputFolder;
    await shortenStep(transcript, step, { mostTokens, leastBytes: leastShareBytes, folder });
  }

  async #halveNewest(): Promise<boolean> {
    const { transcript, project } = this.#deps;
    const step = transcript.messages.findLast(isStep);
    if (step === undefined || step.info.id < newestSummaryId(transcript.messages)) return false;
    const mostTokens = Math.floor(outputTokens(step) / 2);
    const folder = project.workspace.outputFolder;
    return shortenStep(transcript, step, { mostTokens, leastBytes: leastShareBytes, folder });
  }

  async #prune(limits: PruneLimits): Promise<boolean> {
    const { transcript, project, shown } = this.#deps;
    if (project.config.compaction?.prune === false && limits !== hardPruneLimits) return false;
    const isCleared = await prune(transcript, limits);
    if (isCleared) shown.forget();
    return isCleared;
  }

  #tooLong(request: Request, model: Model): AgentError {
    const usable = usableWindow(model, this.#deps.project.config);
    const head = estimateHead(request);
    const question = request.messages.findLast(startsTurn);
    const asked = question === undefined ? 0 : estimateMessage(question);
    const figures = `instructions and tools take ${thousands(head)}${usable === undefined ? "" : ` of ${thousands(usable)} usable`} tokens, your request ${thousands(asked)}`;
    return {
      code: "context-length",
      message: `The conversation does not fit into the context of ${model.name}, and summing it up did not make enough room: ${figures}. ${advice}`,
      retryable: false,
    };
  }
}

const advice =
  "Use fewer tools (deny those that are not needed, or switch off MCP servers), start the server with a larger context, or choose another model.";

/** Only what the model has not seen keeps its outputs. */
const hardPruneLimits: PruneLimits = { keepTurns: 0, keepTokens: 0, leastTokens: 1, keepsNewestStep: true };

/** Tokens that neither clearing outputs nor a compaction can win: instructions, tools, request, summary. */
function fixedTokens(head: RequestHead, messages: readonly Message[]): number {
  const staying = [
    messages.findLast(startsTurn),
    messages.findLast(isFinishedSummary),
    messages.findLast((message) => compactionOf(message) !== undefined),
  ];
  return estimateHead(head) + estimateMessages(staying.filter((message) => message !== undefined));
}

/** Whether there is more to sum up than the request itself and an earlier summary. */
function hasHistory(messages: readonly Message[]): boolean {
  const question = messages.findLast(startsTurn);
  const summary = messages.findLast(isFinishedSummary);
  return messages.some(
    (message) =>
      message !== question &&
      message !== summary &&
      compactionOf(message) === undefined &&
      message.parts.some((part) => part.type === "tool" || (part.type === "text" && part.synthetic !== true)),
  );
}

/** Whether the newest step is all that there is beside the request: a summary of it would win nothing. */
function isFirstStep(messages: readonly Message[]): boolean {
  const step = messages.findLast(isStep);
  return step !== undefined && !hasHistory(messages.filter((message) => message !== step));
}

/** Steps of the running turn since its last compaction; without one there are no limits. */
function stepsSinceCompaction(messages: readonly Message[]): number {
  const summary = newestSummaryId(messages);
  const question = messages.findLast(startsTurn)?.info.id ?? "";
  if (summary < question) return Number.POSITIVE_INFINITY;
  return messages.filter(
    ({ info }) => info.role === "assistant" && info.id > summary && info.finish !== "error",
  ).length;
}

function newestSummaryId(messages: readonly Message[]): string {
  return messages.findLast(isFinishedSummary)?.info.id ?? "";
}

/** What the provider counted for the newest call, and what came since; undefined where outputs were cleared since. */
function sizeByUsage(messages: readonly Message[]): number | undefined {
  const at = messages.findLastIndex(
    ({ info }) => info.role === "assistant" && contextTokens(info.tokens) > 0,
  );
  const last = messages[at];
  if (
    last?.info.role !== "assistant" ||
    last.info.id < newestSummaryId(messages) ||
    last.info.summary === true
  )
    return undefined;
  const { completed = 0 } = last.info.time;
  const isCleared = messages.some(({ parts }) =>
    parts.some((part) => part.type === "tool" && wasClearedAt(part.state) >= completed),
  );
  if (isCleared) return undefined;
  return contextTokens(last.info.tokens) + outputTokens(last) + estimateMessages(messages.slice(at + 1));
}

const outputTokens = ({ parts }: Message): number =>
  parts.reduce((sum, part) => sum + estimateOutput(part), 0);

function wasClearedAt(state: { status: string; compactedAt?: number | undefined }): number {
  return state.compactedAt ?? -1;
}

const thousands = (tokens: number): string =>
  tokens < 1_000 ? `${Math.round(tokens)}` : `${(tokens / 1_000).toFixed(1)}k`;
