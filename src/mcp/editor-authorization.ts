import { randomUuid } from "../base/text/hash.ts";
import type { Elicit } from "../message/elicitation.ts";
import type { AuthorizeOutcome, ShowAddress } from "./oauth/oauth-flow.ts";
import type { McpServer } from "./server.ts";

export interface EditorAuthorizationDeps {
  readonly elicit: Elicit;
  /** Whether the editor can open URLs. */
  canVisit(): boolean;
  /** Notifies the editor that the user completed the address. */
  onVisited(elicitationId: string): void;
  /** Shows the address to the user if the editor cannot open it. */
  onAddress(address: string): void;
}

/** Asks the user to authorize the server; the editor opens the address if it can. Never rejects. */
export async function authorizeInEditor(
  server: McpServer,
  deps: EditorAuthorizationDeps,
  signal: AbortSignal,
): Promise<AuthorizeOutcome> {
  const id = `authorization-${randomUuid()}`;
  const done = new AbortController();
  let isAsked = false;
  const show: ShowAddress = async (address, end) => {
    if (deps.canVisit()) {
      isAsked = true;
      const request = { server: server.settings.name, message, mode: "url" as const, url: address, id };
      const { outcome } = await deps.elicit(request, AbortSignal.any([end, done.signal]));
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

/** Describes the result in a sentence for the user. */
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
