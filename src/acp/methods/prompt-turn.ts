import type {
  ContentBlock,
  PromptRequest,
  PromptResponse,
  StopReason,
  Usage,
} from "@agentclientprotocol/sdk/unstable";
import type { PromptInput } from "../../conversation/prompt-input.ts";
import { noTokens, type TurnResult } from "../../conversation/turn-result.ts";
import type { AcpConnection } from "../connection.ts";
import { toPromptBlocks } from "../view/content.ts";
import { injectionRejected, messageNotFound, turnError } from "../errors.ts";
import type { InjectionChange } from "../../session/session.ts";
import type { SessionView } from "../view/session-view.ts";
import type { ReplaceInjectionParams, RevokeInjectionParams } from "./extensions.ts";
import { readTraceContext } from "./trace-context.ts";

/** Runs a prompt and waits for the end of the turn. */
export async function promptTurn(
  connection: AcpConnection,
  { sessionId, prompt, _meta }: Pick<PromptRequest, "sessionId" | "prompt" | "_meta">,
  signal: AbortSignal,
): Promise<PromptResponse> {
  if (connection.isBeingSetUp(sessionId)) {
    const isWanted = await connection.pendingPrompts.wait(sessionId);
    if (!isWanted || signal.aborted) return cancelledResponse();
  }
  const view = connection.getView(sessionId);
  return toResponse(connection, view, await runTurn(connection, view, toPromptInput(prompt, _meta), signal));
}

/** Converts a prompt, with the trace context of its request. */
export function toPromptInput(prompt: readonly ContentBlock[], meta: PromptRequest["_meta"]): PromptInput {
  const trace = readTraceContext(meta);
  return { blocks: toPromptBlocks(prompt), ...(trace && { trace }) };
}

/** Shows the running turn to a client that did not start it, and reports its end. Does nothing without one. */
export function joinTurn(connection: AcpConnection, view: SessionView): void {
  const turn = view.session.runningTurn;
  if (turn === undefined || view.state.hasTurn) return;
  void view
    .runTurn(() => turn)
    .then((result) => {
      const end =
        result.end === "failed"
          ? { error: turnError(result.error, connection.client).toErrorResponse() }
          : { stopReason: toStopReason(result.end) };
      view.sendTurnEnd({ state: "ended", ...end, usage: toUsage(result) });
      if (result.end === "cancelled") view.endCancelled();
    });
}

/** Cancels the running turn of a session or child session. */
export function cancelTurn(connection: AcpConnection, sessionId: string): void {
  connection.pendingPrompts.cancel(sessionId);
  const session = connection.findView(sessionId)?.session ?? connection.findChild(sessionId);
  session?.cancel();
}

/** Adds a message to the running turn, if any. */
export function steer(connection: AcpConnection, sessionId: string, prompt: readonly ContentBlock[]) {
  const { session } = connection.getView(sessionId);
  const messageId = session.steer({ blocks: toPromptBlocks(prompt) });
  if (messageId !== undefined) return { outcome: "injected", messageId } as const;
  return { outcome: "promptRequired", reason: "noRunningTurn" } as const;
}

/** Removes a message that the model has not received yet. */
export function revokeInjection(
  connection: AcpConnection,
  { sessionId, messageId }: RevokeInjectionParams,
): Record<string, never> {
  checkInjection(connection.getView(sessionId).session.revoke(messageId), messageId);
  return {};
}

/** Replaces the content of a message that the model has not received yet. */
export function replaceInjection(
  connection: AcpConnection,
  { sessionId, messageId, content }: ReplaceInjectionParams,
): { messageId: string } {
  const { session } = connection.getView(sessionId);
  checkInjection(session.replace(messageId, { blocks: toPromptBlocks(content) }), messageId);
  return { messageId };
}

function checkInjection(change: InjectionChange, messageId: string): void {
  if (change === "unknown") throw messageNotFound(messageId);
  if (change === "already read") throw injectionRejected("already_delivered", messageId);
}

/** Runs a turn; an aborted signal cancels it. */
async function runTurn(
  connection: AcpConnection,
  view: SessionView,
  input: PromptInput,
  signal: AbortSignal,
): Promise<TurnResult> {
  view.state.resume();
  return view.runTurn(async () => {
    const answer = view.session.prompt(input, signal);
    await connection.explainDefaults(view);
    return answer;
  });
}

/** Creates the response to a prompt that was cancelled before its session was open. */
function cancelledResponse(): PromptResponse {
  return { stopReason: "cancelled", _meta: { usage: toUsage({ end: "cancelled", tokens: noTokens }) } };
}

async function toResponse(
  connection: AcpConnection,
  view: SessionView,
  result: TurnResult,
): Promise<PromptResponse> {
  if (result.end === "failed") throw turnError(result.error, connection.client);
  if (result.end === "cancelled") view.endCancelled();
  const usage = toUsage(result);
  const { unreportedTasks } = view.session.jobs;
  return {
    stopReason: toStopReason(result.end),
    ...(connection.client.turnUsage && { usage }),
    _meta: {
      usage,
      ...(result.command && { command: result.command }),
      ...(unreportedTasks > 0 && { unreportedTasks }),
    },
  };
}

/** Converts the token usage of a turn, including its tasks. */
export function toUsage({ tokens }: TurnResult): Usage {
  const { input, output, reasoning, cache } = tokens;
  return {
    inputTokens: input,
    outputTokens: output + reasoning,
    thoughtTokens: reasoning,
    cachedReadTokens: cache.read,
    cachedWriteTokens: cache.write,
    totalTokens: input + output + reasoning + cache.read + cache.write,
  };
}

export function toStopReason(end: Exclude<TurnResult["end"], "failed">): StopReason {
  switch (end) {
    case "finished":
      return "end_turn";
    case "cancelled":
      return "cancelled";
    case "stepLimit":
      return "max_turn_requests";
    case "outputLimit":
      return "max_tokens";
    case "refused":
      return "refusal";
  }
}
