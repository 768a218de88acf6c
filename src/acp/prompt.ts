import { type AgentApp, type PromptResponse, type StopReason } from "@agentclientprotocol/sdk/unstable";
import { z } from "zod";
import type { PromptBlock } from "../session/prompt-input.ts";
import type { TurnResult } from "../session/turn-result.ts";
import { toPromptBlocks } from "./content.ts";
import { turnError } from "./errors.ts";
import type { Connection } from "./connection.ts";
import { extensionParams } from "./params.ts";
import type { SessionView } from "./session-view.ts";

/** What can be said into a running turn. */
const steeringSchema = z.object({
  sessionId: z.string(),
  prompt: z.array(
    z.discriminatedUnion("type", [
      z.object({ type: z.literal("text"), text: z.string() }),
      z.object({ type: z.literal("image"), mimeType: z.string(), data: z.string() }),
      z.object({ type: z.literal("resource_link"), uri: z.string(), name: z.string() }),
    ]),
  ),
});
export const steeringParams = extensionParams(steeringSchema);

/** Talking in a session: prompt, cancel, steering. */
export function promptHandlers(app: AgentApp, connection: Connection): void {
  app.onRequest("session/prompt", async ({ params, signal }) => {
    const view = connection.view(params.sessionId);
    return answer(connection, view, await runTurn(view, toPromptBlocks(params.prompt), signal));
  });

  app.onNotification("session/cancel", ({ params }) => {
    const { sessionId } = params;
    const session = connection.findView(sessionId)?.session ?? connection.findChild(sessionId);
    session?.cancel();
  });

  app.onRequest("_session/steering", steeringParams, ({ params }) => steer(connection, params));
}

/** Says something into the turn that runs, if one does. */
export function steer(connection: Connection, params: z.infer<typeof steeringSchema>) {
  const { session } = connection.view(params.sessionId);
  if (session.steer({ blocks: toPromptBlocks(params.prompt) })) return { outcome: "injected" };
  return { outcome: "promptRequired", reason: "noRunningTurn" };
}

/** Asks and waits for the turn's end; an aborted signal cancels it. */
async function runTurn(view: SessionView, blocks: PromptBlock[], signal: AbortSignal): Promise<TurnResult> {
  view.release();
  const turn = view.runTurn(() => view.session.prompt({ blocks }));
  const cancel = () => view.session.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  return turn.finally(() => signal.removeEventListener("abort", cancel));
}

async function answer(
  connection: Connection,
  view: SessionView,
  result: TurnResult,
): Promise<PromptResponse> {
  if (result.end === "failed") throw turnError(result.error);
  if (result.end === "cancelled") view.endCancelled();
  const { input, output, reasoning, cache } = result.tokens;
  const usage = {
    inputTokens: input,
    outputTokens: output + reasoning,
    thoughtTokens: reasoning,
    cachedReadTokens: cache.read,
    cachedWriteTokens: cache.write,
    totalTokens: input + output + reasoning + cache.read + cache.write,
  };
  return {
    stopReason: stopReason(result.end),
    ...(connection.client.turnUsage && { usage }),
    _meta: { usage },
  };
}

export function stopReason(end: Exclude<TurnResult["end"], "failed">): StopReason {
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
