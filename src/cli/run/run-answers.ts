import { createInterface } from "node:readline/promises";
import {
  type PermissionOption,
  type PermissionOptionKind,
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
} from "@agentclientprotocol/sdk";
import { excerpt } from "../../base/text/excerpt.ts";
import { budgetTool } from "../../session-state/budget.ts";
import { consentTool } from "../../session-state/consent.ts";
import { serverConsentTool } from "../../session-state/server-consent.ts";
import type { Printer } from "../terminal/printer.ts";
import { resumeInputAfterSuspend } from "../terminal/job-control.ts";
import { toCell } from "../terminal/output.ts";
import type { RunOptions } from "./run-options.ts";

/** How a question or a call was decided. */
export interface PermissionDecision {
  readonly toolCallId: string;
  /** `allowed`, `denied` (a rule), `rejected` (a user), `cancelled`, or `not_asked`: no user could be asked. */
  readonly outcome: string;
  /** `rules`, `approval`, `mode`, `plugin`, `signal`, `close`, `user`, `nobody` or `--permission allow`. */
  readonly by: string;
  readonly permission?: unknown;
  readonly subject?: unknown;
  readonly rule?: unknown;
  /** Why no user was asked, or the user's words. */
  readonly reason?: string;
}

interface AnswerOptions {
  readonly printer: Printer;
  onAsked(request: RequestPermissionRequest): void;
  onDecided(decision: PermissionDecision): void;
  /** Aborts when the turn no longer waits for the answer. */
  readonly signal: AbortSignal;
  /** Called when the user interrupts instead of answering. */
  onInterrupt(): void;
  /** Called for each call that is refused because no user is asked. */
  onRefused(call: RefusedCall): void;
}

/** A call that was refused because no user could be asked. */
export interface RefusedCall {
  readonly tool: string;
  readonly title: string;
  readonly toolCallId: string;
}

type Policy = Pick<RunOptions, "permission" | "isAttended">;

/**
 * Answers a permission request by the run's policy, or asks the user. Rejects when no user can be asked: the model then
 * reads that nobody answered, and the turn continues.
 */
export async function answerPermission(
  request: RequestPermissionRequest,
  policy: Policy,
  options: AnswerOptions,
): Promise<RequestPermissionResponse> {
  // Language servers help only; a run that asks nobody goes on without them, and stores no answer.
  if (toolOf(request) === serverConsentTool && policy.permission !== "ask")
    throw new RequestError(noAnswerCode, policy.isAttended ? noQuestions : noTerminal);
  options.onAsked(request);
  const { toolCallId } = request.toolCall;
  const refusal = findRefusalReason(request, policy);
  if (refusal !== undefined) {
    options.onDecided({ toolCallId, outcome: "not_asked", by: "nobody", reason: refusal });
    if (isRefusal(request)) options.onRefused(toRefused(request));
    throw new RequestError(noAnswerCode, policy.isAttended ? noQuestions : noTerminal);
  }
  const isAsked = policy.permission === "ask";
  const { kind, feedback } = isAsked ? await askOnTerminal(options) : { kind: "allow_once" };
  const option = request.options.find((candidate) => candidate.kind === kind);
  const by = isAsked ? "user" : "--permission allow";
  const reason = feedback === undefined ? {} : { reason: feedback };
  options.onDecided({ toolCallId, outcome: getOutcome(option), by, ...reason });
  if (option === undefined) return { outcome: { outcome: "cancelled" } };
  return {
    outcome: { outcome: "selected", optionId: option.optionId },
    ...(feedback !== undefined && { _meta: { feedback } }),
  };
}

function getOutcome(option: PermissionOption | undefined): string {
  if (option === undefined) return "cancelled";
  return option.kind.startsWith("allow") ? "allowed" : "rejected";
}

/** In the range that JSON-RPC reserves for implementations. */
const noAnswerCode = -32_001;
const noQuestions = "This run was started without permission questions.";
const noTerminal = "This run has no terminal on which a user could answer.";

/** Returns why the request gets no answer and which flag would change that; undefined when it gets one. */
function findRefusalReason(request: RequestPermissionRequest, policy: Policy): string | undefined {
  const { permission, isAttended } = policy;
  if (permission === "ask") return undefined;
  const why = isAttended ? `--permission ${permission} asks nobody` : "no terminal to ask on";
  const tool = toolOf(request);
  // --permission allow answers rules only: it does not trust a folder, raise the budget or answer the model's questions.
  if (tool === consentTool) return `${why} (--trust would trust it)`;
  if (tool === budgetTool) return `${why} (--max-cost would raise it)`;
  if (tool === questionTool) return why;
  if (isLoop(request)) return `${why} whether to continue a loop`;
  return permission === "allow" ? undefined : `${why} (--allow or --permission allow would allow it)`;
}

/** Whether the call would run with another policy. */
function isRefusal(request: RequestPermissionRequest): boolean {
  const tool = toolOf(request);
  return tool !== consentTool && tool !== budgetTool && tool !== questionTool && !isLoop(request);
}

function toRefused(request: RequestPermissionRequest): RefusedCall {
  const { toolCallId, title } = request.toolCall;
  const tool = toolOf(request);
  return { tool: typeof tool === "string" ? tool : "call", title: title ?? "", toolCallId };
}

const questionTool = "question";
const toolOf = ({ toolCall }: RequestPermissionRequest): unknown => toolCall._meta?.["tool_name"];
const isLoop = ({ toolCall }: RequestPermissionRequest): boolean => toolCall._meta?.["loop"] === true;

/** Calls named in the last line. */
const namedCalls = 5;
/** Characters of their titles. */
const titleLength = 60;

/** Formats the last line of a run with refused calls. */
export function describeRefused(refused: readonly RefusedCall[]): string {
  const names = refused.map(({ tool, title }) => `${tool} \`${excerpt(toCell(title), titleLength)}\``);
  const distinct = [...new Set(names)];
  const more = distinct.length > namedCalls ? `, and ${distinct.length - namedCalls} more` : "";
  const [count, them] =
    refused.length === 1 ? ["1 call was", "it"] : [`${refused.length} calls were`, "them"];
  return `${count} refused: ${distinct.slice(0, namedCalls).join(", ")}${more}; allow ${them} with --allow, a rule or --permission allow`;
}

/** The user's answer. `feedback` is what they wrote instead of a plain no. */
interface TypedAnswer {
  readonly kind: PermissionOptionKind;
  readonly feedback?: string;
}

/** Parses an answer: yes, always, no, or a reason, with or without a "no" before it. One letter is no reason. */
export function parseAnswer(typed: string): TypedAnswer {
  const answer = typed.trim();
  const word = answer.toLowerCase();
  if (word === "y" || word === "yes") return { kind: "allow_once" };
  if (word === "a" || word === "always") return { kind: "allow_always" };
  const feedback = answer.replace(/^no?(?:[\s,.:;!-]+|$)/i, "");
  return { kind: "reject_once", ...(feedback.length > 1 && { feedback }) };
}

async function askOnTerminal(options: AnswerOptions): Promise<TypedAnswer> {
  const { printer, signal } = options;
  printer.end();
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const leave = resumeInputAfterSuspend(process.stdin);
  // Ctrl-D means no.
  const closed = Promise.withResolvers<string>();
  const onClose = () => {
    process.stderr.write("\n");
    closed.resolve("");
  };
  terminal.once("close", onClose);
  terminal.on("SIGINT", () => {
    terminal.close();
    options.onInterrupt();
  });
  try {
    const prompt = "  y = yes, a = always, n = no, anything else = no, and why: ";
    const typed = terminal.question(prompt, { signal });
    const answer = await Promise.race([typed, closed.promise]);
    terminal.off("close", onClose);
    return parseAnswer(answer);
  } catch {
    // The turn was cancelled, or the terminal was closed.
    return { kind: "reject_once" };
  } finally {
    terminal.close();
    leave();
  }
}
