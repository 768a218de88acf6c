import type { AgentApp } from "@agentclientprotocol/sdk/unstable";
import { z } from "zod";
import { toPromptBlocks } from "./content.ts";
import type { Connection } from "./connection.ts";
import { extensionParams } from "./params.ts";
import { cancelTurn, promptTurn } from "./prompt-turn.ts";

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
  app.onRequest("session/prompt", ({ params, signal }) => promptTurn(connection, params, signal));

  app.onNotification("session/cancel", ({ params }) => cancelTurn(connection, params.sessionId));

  app.onRequest("_session/steering", steeringParams, ({ params }) => steer(connection, params));
}

/** Says something into the turn that runs, if one does. */
export function steer(connection: Connection, params: z.infer<typeof steeringSchema>) {
  const { session } = connection.view(params.sessionId);
  if (session.steer({ blocks: toPromptBlocks(params.prompt) })) return { outcome: "injected" };
  return { outcome: "promptRequired", reason: "noRunningTurn" };
}
