import type { AgentApp } from "@agentclientprotocol/sdk/unstable";
import { z } from "zod";
import { toPromptBlocks } from "../view/content.ts";
import type { AcpConnection } from "../connection.ts";
import { extensionParams } from "./params.ts";
import { parseContent } from "./parse-content.ts";
import { cancelTurn, promptTurn } from "./prompt-turn.ts";

const parseSteering = extensionParams(z.object({ sessionId: z.string(), prompt: z.array(z.unknown()) }));

/** Parses the params of a steering request. */
export function steeringParams(params: unknown) {
  const { sessionId, prompt } = parseSteering(params);
  return { sessionId, prompt: parseContent(prompt) };
}

/** Handlers for prompt, cancel and steering. */
export function promptHandlers(app: AgentApp, connection: AcpConnection): void {
  app.onRequest("session/prompt", ({ params, signal }) => promptTurn(connection, params, signal));

  app.onNotification("session/cancel", ({ params }) => cancelTurn(connection, params.sessionId));

  app.onRequest("_session/steering", steeringParams, ({ params }) => steer(connection, params));
}

/** Adds a message to the running turn, if any. */
export function steer(connection: AcpConnection, params: ReturnType<typeof steeringParams>) {
  const { session } = connection.getView(params.sessionId);
  if (session.steer({ blocks: toPromptBlocks(params.prompt) })) return { outcome: "injected" };
  return { outcome: "promptRequired", reason: "noRunningTurn" };
}
