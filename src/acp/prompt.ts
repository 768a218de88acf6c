import { type AgentApp, type PromptResponse, type StopReason } from "@agentclientprotocol/sdk/unstable";
import { z } from "zod";
import type { TurnResult } from "../session/turn-result.ts";
import { toPromptBlocks } from "./content.ts";
import { turnError } from "./errors.ts";
import type { Connection } from "./connection.ts";
import { extensionParams } from "./params.ts";
import type { SessionView } from "./session-view.ts";

/** What can be said into a running turn. */
const steeringParams = extensionParams(
  z.object({
    sessionId: z.string(),
    prompt: z.array(
      z.discriminatedUnion("type", [
        z.object({ type: z.literal("text"), text: z.string() }),
        z.object({ type: z.literal("image"), mimeType: z.string(), data: z.string() }),
        z.object({ type: z.literal("resource_link"), uri: z.string(), name: z.string() }),
      ]),
    ),
  }),
);

/** Talking in a session: prompt, cancel, steering. */
export function promptHandlers(app: AgentApp, connection: Connection): void {
  app.onRequest("session/prompt", async ({ params, signal }) => {
    const view = connection.view(params.sessionId);
    const blocks = toPromptBlocks(params.prompt);
    view.release();
    const turn = view.runTurn(() => view.session.prompt({ blocks }));
    const cancel = () => view.session.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    const result = await turn.finally(() => signal.removeEventListener("abort", cancel));
    return answer(view, result);
  });

  app.onNotification("session/cancel", ({ params }) => {
    const { sessionId } = params;
    const session = connection.findView(sessionId)?.session ?? connection.findChild(sessionId);
    session?.cancel();
  });

  app.onRequest("_session/steering", steeringParams, ({ params }) => {
    const view = connection.view(params.sessionId);
    const blocks = toPromptBlocks(params.prompt);
    if (view.session.steer({ blocks })) return { outcome: "injected" };
    return { outcome: "promptRequired", reason: "noRunningTurn" };
  });
}

async function answer(view: SessionView, result: TurnResult): Promise<PromptResponse> {
  if (result.end === "failed") throw turnError(result.error);
  if (result.end === "cancelled") view.hold();
  const { input, output, reasoning, cache } = result.tokens;
  const usage = {
    inputTokens: input,
    outputTokens: output + reasoning,
    thoughtTokens: reasoning,
    cachedReadTokens: cache.read,
    cachedWriteTokens: cache.write,
    totalTokens: input + output + reasoning + cache.read + cache.write,
  };
  return { stopReason: stopReason(result.end), _meta: { usage } };
}

function stopReason(end: Exclude<TurnResult["end"], "failed">): StopReason {
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
