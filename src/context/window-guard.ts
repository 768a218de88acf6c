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
import { minShareBytes, outputLimitBytes, type ResultLimits } from "../tool/output-limit.ts";
import { startsTurn } from "../message/starts-turn.ts";
import { bytesPerToken, sumContextTokens, getTextLimitBytes, getUsableWindow } from "./context-budget.ts";
import { isUncached } from "./prompt-cache.ts";
import { findPrunable, isStep, prune, type PruneLimits, pruneLimits, shortenStep } from "./prune.ts";
import type { Project } from "../conversation/project.ts";
import type { StepOutcome } from "../conversation/step-outcome.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { compactionOf, isFinishedSummary } from "../conversation/visible-messages.ts";

/** Share of the window for the newest outputs, which stay when older ones are cleared. */
const keptShare = 0.25;
/** Target of clearing, as shares of the usable window and of the clearable tokens. */
const clearedShare = 0.7;
const clearedClearableShare = 0.6;
/** Maximum share of the clearable tokens that the newest outputs keep, for small windows. */
const keptClearableShare = 1 / 3;
/** Minimum steps between compactions; before that, outputs are cleared instead. */
const minStepsBetweenCompactions = 3;
/** Maximum ratio of the provider's token count to the estimate. */
const maxScale = 1.5;
/** Factor applied to the ratio after the provider refused a request as too long. */
const refusedScale = 1.15;
const leastScale = 0.8;
/** Share of the window for the results of one step. */
const stepShare = 0.4;
/** Maximum share of the free window for the results of one step; the rest is for notes. */
const freeShare = 0.8;
const leastStepBytes = 4 * 1024;
/** Approximate size of the note that replaces omitted output. */
const noteTokens = 100;
/** Usable tokens below which instructions and tools leave too little for work. */
const smallUsable = 8_000;

export interface WindowGuardDeps {
  project: Project;
  transcript: Transcript;
  /** Called after old outputs were cleared. */
  onCleared(): void;
}

/** What to do before a request, or after one that was too long. */
export type WindowVerdict = "ask" | "compact" | AgentError;

type Request = Pick<ModelRequest, "system" | "tools" | "messages">;

/**
 * Keeps the requests of a turn within the model's window: clears old outputs, requests compactions, or fails
 * with advice.
 */
export class WindowGuard {
  readonly #deps: WindowGuardDeps;
  /** Ratio of the provider's token count to the estimate in the newest call; 1 if unknown. */
  #scale = 1;
  #isMeasured = false;

  constructor(deps: WindowGuardDeps) {
    this.#deps = deps;
  }

  /** Updates the ratio from a finished call. */
  measure(estimated: number, { tokens, isEstimated }: Pick<StepOutcome, "tokens" | "isEstimated">): void {
    const counted = tokens.input + tokens.cache.read + tokens.cache.write;
    if (isEstimated || counted === 0 || estimated === 0) return;
    this.#scale = Math.min(maxScale, Math.max(leastScale, counted / estimated));
    this.#isMeasured = true;
  }

  /** Tokens of a request, based on the provider's counts; undefined before the first count. */
  getPromptTokens(request: Request): number | undefined {
    return this.#isMeasured ? this.estimateSize(request) : undefined;
  }

  /** Makes a request fit before it is sent. */
  async beforeRequest(request: Request, model: Model): Promise<WindowVerdict> {
    const { project } = this.#deps;
    // Clearing outputs invalidates the provider's prompt cache, so it waits until the cache has expired.
    if (isUncached(request.messages, model, project.config)) await this.#prune(pruneLimits);
    const usable = getUsableWindow(model, project.config);
    if (usable === undefined || project.config.compaction?.auto === false) return "ask";
    if (this.estimateSize(request) < usable || (await this.#clear(request, model, usable))) return "ask";
    if (isFirstStep(request.messages)) {
      await this.#shortenNewest(request, usable);
      if (this.estimateSize(request) < usable) return "ask";
    }
    // Nothing to compact: let the provider decide whether it fits.
    if (!hasHistory(request.messages)) return "ask";
    if (countStepsSinceCompaction(request.messages) >= minStepsBetweenCompactions) return "compact";
    await this.#clearAll(request, usable);
    return this.estimateSize(request) < usable ? "ask" : this.#tooLong(request, model);
  }

  /** Shrinks a request that the provider refused as too long; the newest outputs are shortened first. */
  async afterRefusal(request: Request, model: Model, error: AgentError): Promise<WindowVerdict> {
    const { project, transcript } = this.#deps;
    if (project.config.compaction?.auto === false) return error;
    // The provider counts more than estimated, or has a smaller window.
    this.#scale = Math.min(maxScale, this.#scale * refusedScale);
    this.#isMeasured = true;
    if (await this.#halveNewest()) return "ask";
    if (!hasHistory(transcript.messages)) return this.#tooLong(request, model);
    if (countStepsSinceCompaction(transcript.messages) >= minStepsBetweenCompactions) return "compact";
    return (await this.#prune(hardPruneLimits)) ? "ask" : this.#tooLong(request, model);
  }

  /** Size limits for the results of the next step; undefined if the window is unknown. */
  getResultLimits(request: Request, model: Model): ResultLimits | undefined {
    const { context } = model.limit;
    const usable = getUsableWindow(model, this.#deps.project.config);
    if (context === undefined || usable === undefined) return undefined;
    const free = usable - this.#scale * sumFixedTokens(request, request.messages);
    const step = Math.floor(Math.min(context * stepShare, free * freeShare) * bytesPerToken);
    const each = Math.min(outputLimitBytes, getTextLimitBytes(model));
    // Always allow one small result.
    return { each, step: Math.max(leastStepBytes, step) };
  }

  /** Warning if instructions and tools nearly fill the window; undefined otherwise. */
  createWarning(head: RequestHead, model: Model): string | undefined {
    const usable = getUsableWindow(model, this.#deps.project.config);
    if (usable === undefined || usable >= smallUsable) return undefined;
    return `The context of ${model.name} is too small: instructions and tools take ${thousands(estimateHead(head))} of ${thousands(usable)} usable tokens. ${advice}`;
  }

  /**
   * Tokens of a request: the newest count of the provider plus an estimate of later parts, or else an
   * estimate.
   */
  estimateSize(request: Request): number {
    const { messages } = request;
    return computeSizeByUsage(messages) ?? Math.round(estimateRequest(request) * this.#scale);
  }

  /** Clears older outputs in one batch, if that saves enough. */
  async #clear(request: Request, model: Model, usable: number): Promise<boolean> {
    const { messages } = request;
    const step = messages.findLast(isStep);
    const newest = step === undefined ? 0 : outputTokens(step);
    const fixed = this.#scale * (sumFixedTokens(request, messages) + newest);
    const clearable = Math.max(0, usable - fixed);
    const window = model.limit.context ?? usable;
    const keepTokens = Math.min(window * keptShare, clearable * keptClearableShare) / this.#scale;
    const limits = { keepTurns: 0, keepTokens, leastTokens: 1, keepsNewestStep: true };
    const won = findPrunable(messages, limits).reduce((sum, { part }) => sum + estimateOutput(part), 0);
    const most = Math.max(usable * clearedShare, fixed + clearable * clearedClearableShare);
    if (this.estimateSize(request) - won * this.#scale > most) return false;
    return this.#prune(limits);
  }

  /** Clears all outputs except those that the model has not seen, and shortens these to fit. */
  async #clearAll(request: Request, usable: number): Promise<void> {
    await this.#prune(hardPruneLimits);
    await this.#shortenNewest(request, usable);
  }

  async #shortenNewest(request: Request, usable: number): Promise<void> {
    const { transcript, project } = this.#deps;
    const step = transcript.messages.findLast(isStep);
    const over = this.estimateSize(request) - usable;
    if (step === undefined || over < 0) return;
    // Sizes from usage contain outputs as estimated, so a larger scale saves no more.
    const won = Math.ceil(over / Math.min(1, this.#scale)) + step.parts.length * noteTokens;
    const mostTokens = Math.max(0, outputTokens(step) - won);
    const folder = project.workspace.outputFolder;
    await shortenStep(transcript, step, { mostTokens, leastBytes: minShareBytes, folder });
  }

  async #halveNewest(): Promise<boolean> {
    const { transcript, project } = this.#deps;
    const step = transcript.messages.findLast(isStep);
    if (step === undefined || step.info.id < newestSummaryId(transcript.messages)) return false;
    const mostTokens = Math.floor(outputTokens(step) / 2);
    const folder = project.workspace.outputFolder;
    return shortenStep(transcript, step, { mostTokens, leastBytes: minShareBytes, folder });
  }

  async #prune(limits: PruneLimits): Promise<boolean> {
    const { transcript, project } = this.#deps;
    if (project.config.compaction?.prune === false && limits !== hardPruneLimits) return false;
    const isCleared = await prune(transcript, limits);
    if (isCleared) this.#deps.onCleared();
    return isCleared;
  }

  #tooLong(request: Request, model: Model): AgentError {
    const usable = getUsableWindow(model, this.#deps.project.config);
    const head = estimateHead(request);
    const question = request.messages.findLast(startsTurn);
    const questionTokens = question === undefined ? 0 : estimateMessage(question);
    const figures = `instructions and tools take ${thousands(head)}${usable === undefined ? "" : ` of ${thousands(usable)} usable`} tokens, your request ${thousands(questionTokens)}`;
    return {
      code: "context-length",
      message: `The conversation does not fit into the context of ${model.name}, and compacting it did not free enough: ${figures}. ${advice}`,
      retryable: false,
    };
  }
}

const advice =
  "Use fewer tools (deny those that are not needed, or switch off MCP servers), start the server with a larger context, or choose another model.";

/** Clears all outputs except those that the model has not seen. */
const hardPruneLimits: PruneLimits = { keepTurns: 0, keepTokens: 0, leastTokens: 1, keepsNewestStep: true };

/** Tokens that neither clearing nor compaction can save: instructions, tools, request, summary. */
function sumFixedTokens(head: RequestHead, messages: readonly Message[]): number {
  const staying = [
    messages.findLast(startsTurn),
    messages.findLast(isFinishedSummary),
    messages.findLast((message) => compactionOf(message) !== undefined),
  ];
  return estimateHead(head) + estimateMessages(staying.filter((message) => message !== undefined));
}

/** Whether there is more to compact than the request and an earlier summary. */
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

/** Whether the newest step is the only content besides the request; compacting it would save nothing. */
function isFirstStep(messages: readonly Message[]): boolean {
  const step = messages.findLast(isStep);
  return step !== undefined && !hasHistory(messages.filter((message) => message !== step));
}

/** Steps of the running turn since its last compaction; infinite without one. */
function countStepsSinceCompaction(messages: readonly Message[]): number {
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

/** The provider's count of the newest call plus later parts; undefined if outputs were cleared since. */
function computeSizeByUsage(messages: readonly Message[]): number | undefined {
  const at = messages.findLastIndex(
    ({ info }) => info.role === "assistant" && sumContextTokens(info.tokens) > 0,
  );
  const last = messages[at];
  if (
    last?.info.role !== "assistant" ||
    last.info.id < newestSummaryId(messages) ||
    last.info.summary === true
  )
    return undefined;
  const { completed = 0 } = last.info.time;
  if (isClearedSince(completed, messages)) return undefined;
  return sumContextTokens(last.info.tokens) + outputTokens(last) + estimateMessages(messages.slice(at + 1));
}

const outputTokens = ({ parts }: Message): number =>
  parts.reduce((sum, part) => sum + estimateOutput(part), 0);

/** Whether an output was cleared at the time or later. */
function isClearedSince(time: number, messages: readonly Message[]): boolean {
  for (const { parts } of messages)
    for (const part of parts)
      if (part.type === "tool" && part.state.status === "completed" && (part.state.compactedAt ?? -1) >= time)
        return true;
  return false;
}

const thousands = (tokens: number): string =>
  tokens < 1_000 ? `${Math.round(tokens)}` : `${(tokens / 1_000).toFixed(1)}k`;
