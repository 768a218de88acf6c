import { randomUUID } from "node:crypto";
import type { Elicit } from "../message/elicitation.ts";
import type { AuthorizeOutcome, ShowAddress } from "./oauth/oauth-flow.ts";
import type { McpServer } from "./server.ts";

export interface EditorAuthorizationDeps {
  readonly elicit: Elicit;
  /** Whether the editor opens addresses. */
  canVisit(): boolean;
  /** The editor is told that the person is done with the address. */
  onVisited(elicitationId: string): void;
  /** Where to go, for the person of an editor that does not bring them there. */
  onAddress(address: string): void;
}

/** Has the person authorize the server, brought to the address by the editor where it can. Never rejects. */
export async function authorizeInEditor(
  server: McpServer,
  deps: EditorAuthorizationDeps,
  signal: AbortSignal,
): Promise<AuthorizeOutcome> {
  const id = `authorization-${randomUUID()}`;
  const done = new AbortController();
  let isAsked = false;
  const show: ShowAddress = async (address, end) => {
    if (deps.canVisit()) {
      isAsked = true;
      const asked = { server: server.settings.name, message, mode: "url" as const, url: address, id };
      const { outcome } = await deps.elicit(asked, AbortSignal.any([end, done.signal]));
      if (outcome === "accepted") return "shown";
      if (outcome !== "unavailable") return "declined";
    }
    deps.onAddress(address);
    return "shown";
  };
  const outcome = await server.authorize(show, signal);
  done.abort();
  const isOver = outcome.outcome === "authorized" || outcome.outcome === "failed";
  if (isAsked && isOver) deps.onVisited(id);
  return outcome;
}

const message = "give Fairlead access in your browser.";

/** How it went, as a sentence for the person. */
export function describeAuthorization(
  { settings: { name }, status }: McpServer,
  how: AuthorizeOutcome,
): string {
  switch (how.outcome) {
    case "authorized":
    case "notNeeded": {
      const first = how.outcome === "authorized" ? "is authorized" : "answers without being authorized";
      const reason = status.state === "failed" ? `: ${status.reason}` : "";
      return `The MCP server "${name}" ${first}; it is ${status.state}${reason}.`;
    }
    case "declined":
      return `The MCP server "${name}" was not authorized. When you want to: /mcp auth ${name}`;
    case "cancelled":
      return `The authorization of the MCP server "${name}" was cancelled.`;
    case "failed":
      return `The MCP server "${name}" was not authorized: ${how.reason}`;
  }
}
