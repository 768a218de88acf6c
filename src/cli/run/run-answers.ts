import { createInterface } from "node:readline/promises";
import {
  type PermissionOptionKind,
  RequestError,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
} from "@agentclientprotocol/sdk";
import { excerpt } from "../../base/text/excerpt.ts";
import { budgetTool } from "../../session-state/budget.ts";
import { consentTool } from "../../session-state/consent.ts";
import type { Printer } from "../terminal/printer.ts";
import { readOnWhenTakenUp } from "../terminal/job-control.ts";
import { toCell } from "../terminal/output.ts";
import type { RunOptions } from "./run-options.ts";

interface Asking {
  readonly printer: Printer;
  /** Aborts when the turn no longer waits for the answer. */
  readonly signal: AbortSignal;
  /** Called where the person interrupts instead of answering. */
  onInterrupt(): void;
  /** Called for each call that is not allowed because nobody is asked. */
  onRefused(call: RefusedCall): void;
}

/** A call that was not allowed because nobody could be asked. */
export interface RefusedCall {
  readonly tool: string;
  readonly title: string;
  readonly toolCallId: string;
}

type Policy = Pick<RunOptions, "permission" | "isAttended">;

/**
 * Answers a question of the server by the run's policy, or asks the user. Rejects where nobody is asked: then the
 * model reads that nobody answered, and its turn goes on.
 */
export async function answerFor(
  request: RequestPermissionRequest,
  policy: Policy,
  asking: Asking,
): Promise<RequestPermissionResponse> {
  const { printer } = asking;
  printer.question(request);
  const wayOut = whyUnanswered(request, policy);
  if (wayOut !== undefined) {
    printer.line(`  not allowed: ${wayOut}`);
    if (isRefusal(request)) asking.onRefused(toRefused(request));
    throw new RequestError(nobodyAnswers, policy.isAttended ? askedNobody : noTerminal);
  }
  const kind = policy.permission === "ask" ? await askOnTerminal(asking) : "allow_once";
  const option = request.options.find((candidate) => candidate.kind === kind);
  if (option === undefined) return { outcome: { outcome: "cancelled" } };
  return { outcome: { outcome: "selected", optionId: option.optionId } };
}

/** JSON-RPC leaves these codes to the implementation. */
const nobodyAnswers = -32_001;
const askedNobody = "This run was started so that nobody is asked.";
const noTerminal = "This run has no terminal on which anybody could answer.";

/** Why the question gets no answer, with what would change that; undefined where it gets one. */
function whyUnanswered(request: RequestPermissionRequest, policy: Policy): string | undefined {
  const { permission, isAttended } = policy;
  if (permission === "ask") return undefined;
  const why = isAttended ? `--permission ${permission} asks nobody` : "nobody is here to ask";
  const tool = toolOf(request);
  // To allow what rules ask for is neither to trust what others wrote, nor to spend more, nor to answer a question.
  if (tool === consentTool) return `${why} (--trust would trust it)`;
  if (tool === budgetTool) return `${why} (--max-cost would raise it)`;
  if (tool === questionTool) return why;
  if (isLoop(request)) return `${why} whether a loop may go on`;
  return permission === "allow" ? undefined : `${why} (--permission allow would allow it)`;
}

/** Whether the call would have run with another policy. */
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

/** Calls and characters of a title that the last line names. */
const namedCalls = 5;
const titleLength = 60;

/** The last line of a run in which calls were refused. */
export function describeRefused(refused: readonly RefusedCall[]): string {
  const names = refused.map(({ tool, title }) => `${tool} \`${excerpt(toCell(title), titleLength)}\``);
  const distinct = [...new Set(names)];
  const more = distinct.length > namedCalls ? `, and ${distinct.length - namedCalls} more` : "";
  const [count, them] =
    refused.length === 1 ? ["1 call was", "it"] : [`${refused.length} calls were`, "them"];
  return `${count} refused: ${distinct.slice(0, namedCalls).join(", ")}${more}; allow ${them} with a rule or --permission allow`;
}

async function askOnTerminal(asking: Asking): Promise<PermissionOptionKind> {
  const { printer, signal } = asking;
  printer.end();
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const leave = readOnWhenTakenUp(process.stdin);
  // Ctrl-D is an answer too.
  const closed = Promise.withResolvers<string>();
  const onClose = () => {
    process.stderr.write("\n");
    closed.resolve("");
  };
  terminal.once("close", onClose);
  terminal.on("SIGINT", () => {
    terminal.close();
    asking.onInterrupt();
  });
  try {
    const asked = terminal.question("  y = yes, a = always, anything else = no: ", { signal });
    const answer = (await Promise.race([asked, closed.promise])).trim().toLowerCase();
    terminal.off("close", onClose);
    if (answer === "y" || answer === "yes") return "allow_once";
    return answer === "a" || answer === "always" ? "allow_always" : "reject_once";
  } catch {
    // The turn was cancelled meanwhile, or the terminal is gone: nobody said yes.
    return "reject_once";
  } finally {
    terminal.close();
    leave();
  }
}
