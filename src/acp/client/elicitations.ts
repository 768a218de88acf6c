import { errorFields } from "../../base/error-fields.ts";
import type { ElicitationPropertySchema } from "@agentclientprotocol/sdk/unstable";
import { z } from "zod";
import type { Log } from "../../base/log.ts";
import type { Elicitation, ElicitationField, ElicitationOutcome } from "../../message/elicitation.ts";
import type { SessionId } from "../../message/ids.ts";
import { showInvisible } from "../../base/text/invisible.ts";
import type { ClientRequests, SessionElicitation } from "./requester.ts";
import type { ClientFeatures } from "../client-capabilities.ts";

export interface ElicitationDeps {
  requests: ClientRequests;
  features: Pick<ClientFeatures, "forms" | "urls">;
  log: Log;
}

const valueSchema = z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]);
const responseSchema = z.looseObject({
  action: z.string(),
  content: z.record(z.string(), valueSchema.nullish().catch(undefined)).nullish(),
});

/**
 * Sends an MCP server's elicitation to the client. Never rejects: errors resolve to `unavailable`, an aborted signal to
 * `cancelled`.
 */
export async function elicitFromClient(
  { requests, features, log }: ElicitationDeps,
  sessionId: SessionId,
  elicitation: Elicitation,
  signal: AbortSignal,
): Promise<ElicitationOutcome> {
  if (!(elicitation.mode === "form" ? features.forms : features.urls)) return { outcome: "unavailable" };
  try {
    const response = await requests.elicit(toRequest(sessionId, elicitation), signal);
    return toOutcome(responseSchema.parse(response), elicitation);
  } catch (error) {
    if (signal.aborted) return { outcome: "cancelled" };
    log.warn("MCP elicitation failed", { sessionId, ...errorFields(error) });
    return { outcome: "unavailable" };
  }
}

function toRequest(sessionId: SessionId, elicitation: Elicitation): SessionElicitation {
  const { server, message, callId } = elicitation;
  // The server controls the message, so the prefix shows where it comes from.
  const shownMessage = showInvisible(`The MCP server "${server}" asks: ${message}`);
  const scope = { sessionId, message: shownMessage, ...(callId !== undefined && { toolCallId: callId }) };
  if (elicitation.mode === "url")
    return { ...scope, mode: "url", url: elicitation.url, elicitationId: elicitation.id };
  const { fields, required } = elicitation.form;
  const properties = Object.entries(fields).map(([name, field]) => [name, toProperty(field)]);
  const requestedSchema = {
    type: "object" as const,
    properties: Object.fromEntries(properties),
    ...(required.length > 0 && { required: [...required] }),
  };
  return { ...scope, mode: "form", requestedSchema };
}

function toProperty(field: ElicitationField): ElicitationPropertySchema {
  const { title, description } = field;
  return {
    ...field,
    ...(typeof title === "string" && { title: showInvisible(title) }),
    ...(typeof description === "string" && { description: showInvisible(description) }),
  };
}

function toOutcome(
  { action, content }: z.output<typeof responseSchema>,
  elicitation: Elicitation,
): ElicitationOutcome {
  switch (action) {
    case "accept":
      return { outcome: "accepted", content: filterContent(elicitation, content ?? {}) };
    case "decline":
      return { outcome: "declined" };
    case "cancel":
      return { outcome: "cancelled" };
    default:
      return { outcome: "unavailable" };
  }
}

/** Returns only the requested fields. */
function filterContent(
  elicitation: Elicitation,
  content: Record<string, z.output<typeof valueSchema> | null | undefined>,
) {
  if (elicitation.mode === "url") return {};
  const { fields } = elicitation.form;
  const given = Object.entries(content).flatMap(([name, value]) =>
    Object.hasOwn(fields, name) && value !== null && value !== undefined ? [[name, value] as const] : [],
  );
  return Object.fromEntries(given);
}
