import {
  type PermissionOption,
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
} from "@agentclientprotocol/sdk";
import { excerpt } from "../../base/text/excerpt.ts";
import { budgetTool } from "../../session-state/budget.ts";
import { consentTool } from "../../session-state/consent.ts";
import { serverConsentTool } from "../../session-state/server-consent.ts";
import type { Asker } from "../ask/asker.ts";
import type { Prompt } from "../ask/prompt.ts";
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
  readonly asker: Asker;
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
  // Language servers are optional: a run that asks nobody continues without them and stores no answer.
  if (toolOf(request) === serverConsentTool && policy.permission !== "ask")
    throw new RequestError(noAnswerCode, policy.isAttended ? noQuestions : noTerminal);
  const { toolCallId } = request.toolCall;
  const refusal = findRefusalReason(request, policy);
  if (refusal !== undefined) {
    options.onAsked(request);
    options.onDecided({ toolCallId, outcome: "not_asked", by: "nobody", reason: refusal });
    if (isRefusal(request)) options.onRefused(toRefused(request));
    throw new RequestError(noAnswerCode, policy.isAttended ? noQuestions : noTerminal);
  }
  const isAsked = policy.permission === "ask";
  const { option, feedback }: UserAnswer = isAsked
    ? await options.asker.inTurn(() => {
        options.onAsked(request);
        return askUser(request, options);
      })
    : allowOnce(request, options);
  const by = isAsked ? "user" : "--permission allow";
  const reason = feedback === undefined ? {} : { reason: feedback };
  options.onDecided({ toolCallId, outcome: getOutcome(option), by, ...reason });
  if (option === undefined) return { outcome: { outcome: "cancelled" } };
  return {
    outcome: { outcome: "selected", optionId: option.optionId },
    ...(feedback !== undefined && { _meta: { feedback } }),
  };
}

function allowOnce(request: RequestPermissionRequest, options: AnswerOptions): UserAnswer {
  options.onAsked(request);
  return { option: request.options.find(({ kind }) => kind === "allow_once") };
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
  if (tool === consentTool) return `${why} (--trust trusts it)`;
  if (tool === budgetTool) return `${why} (--max-cost raises it)`;
  if (tool === questionTool) return why;
  if (isLoop(request)) return `${why} whether to continue a loop`;
  return permission === "allow" ? undefined : `${why} (--allow or --permission allow allows it)`;
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
interface UserAnswer {
  readonly option: PermissionOption | undefined;
  readonly feedback?: string;
}

/** Creates the prompt of a permission request. Typed text is a no and its reason. */
export function createPermissionPrompt(options: readonly PermissionOption[]): Prompt {
  const find = (prefix: string) => {
    const index = options.findIndex(({ kind }) => kind.startsWith(prefix));
    return index === -1 ? undefined : index;
  };
  return {
    options: options.map(({ name }) => ({ label: name })),
    textHint: "type what to do instead",
    escape: "reject",
    findByWord: (word) => {
      if (/^(y|yes)$/i.test(word)) return find("allow_once");
      if (/^(a|always)$/i.test(word)) return find("allow_always");
      // A single letter is a typing mistake, not a reason.
      return /^(no?\W*|\p{L})$/iu.test(word) ? find("reject") : undefined;
    },
  };
}

/** Removes the "no" of "no, but …". */
const toReason = (text: string): string => text.replace(/^no?[\s,.:;!-]+/i, "");

async function askUser(request: RequestPermissionRequest, options: AnswerOptions): Promise<UserAnswer> {
  const { asker, signal } = options;
  const rejection = request.options.find(({ kind }) => kind === "reject_once");
  const answer = await asker.ask(createPermissionPrompt(request.options), signal);
  switch (answer.kind) {
    case "withdrawn":
      return { option: undefined };
    case "interrupted":
      options.onInterrupt();
      return { option: rejection };
    case "closed":
      asker.confirm(rejection?.name ?? "cancelled");
      return { option: rejection };
    case "answered": {
      const [index] = answer.chosen;
      const option = index === undefined ? rejection : request.options[index];
      const feedback = toReason(answer.text);
      asker.confirm(toCell(feedback === "" ? (option?.name ?? "") : `No: ${feedback}`));
      return { option, ...(feedback !== "" && { feedback }) };
    }
  }
}
