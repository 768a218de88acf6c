import { deferred, orWhenAborted } from "../base/async.ts";
import type { Elicit } from "../message/elicitation.ts";
import { authorizeInEditor, describeAuthorization } from "./editor-authorization.ts";
import type { AuthorizeOutcome } from "./oauth/oauth-flow.ts";
import type { McpServer } from "./server.ts";

export interface AuthorizationsDeps {
  readonly elicit: Elicit;
  canVisit: () => boolean;
  onVisited: (elicitationId: string) => void;
  report(text: string, severity?: "info" | "warning"): void;
}

/** Authorization requests of one session. */
export class Authorizations {
  readonly #deps: AuthorizationsDeps;
  readonly #invited = new Set<McpServer>();
  readonly #closing = new AbortController();

  constructor(deps: AuthorizationsDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves with the result. If the editor cannot open the address, resolves immediately with the address and reports
   * the result later.
   */
  ask(server: McpServer, signal: AbortSignal): Promise<string> {
    const answer = deferred<string>();
    let isAnswered = false;
    const onAddress = (address: string) => {
      isAnswered = true;
      answer.resolve(describeAddress(server, address));
    };
    // The user may visit the address after the turn has ended.
    const end = this.#deps.canVisit()
      ? AbortSignal.any([signal, this.#closing.signal])
      : this.#closing.signal;
    void this.#authorize(server, onAddress, end).then((outcome) => {
      if (isAnswered) this.#reportOutcome(server, outcome);
      else answer.resolve(describeAuthorization(server, outcome));
    });
    return orWhenAborted(answer.promise, signal, describeAuthorization(server, { outcome: "cancelled" }));
  }

  /** Asks the user once per server, in the background, if the editor can open addresses. */
  invite(server: McpServer): void {
    if (server.status.state !== "needs authorization" || !this.#deps.canVisit()) return;
    if (server.isAuthorizing || this.#invited.has(server)) return;
    this.#invited.add(server);
    const onAddress = (address: string) => this.#deps.report(describeAddress(server, address));
    void this.#authorize(server, onAddress, this.#closing.signal).then((outcome) =>
      this.#reportOutcome(server, outcome),
    );
  }

  /** Allows the server to be offered again. */
  forget(server: McpServer): void {
    this.#invited.delete(server);
  }

  close(): void {
    this.#closing.abort();
  }

  #authorize(
    server: McpServer,
    onAddress: (address: string) => void,
    signal: AbortSignal,
  ): Promise<AuthorizeOutcome> {
    const { elicit, canVisit, onVisited } = this.#deps;
    return authorizeInEditor(server, { elicit, canVisit, onVisited, onAddress }, signal);
  }

  /** Reports a result unless it was cancelled by the user or by another attempt. */
  #reportOutcome(server: McpServer, outcome: AuthorizeOutcome): void {
    if (this.#closing.signal.aborted || outcome.outcome === "cancelled") return;
    const severity = outcome.outcome === "failed" ? "warning" : "info";
    this.#deps.report(describeAuthorization(server, outcome), severity);
  }
}

function describeAddress({ settings: { name } }: McpServer, address: string): string {
  return `To authorize the MCP server "${name}", open this address in your browser within five minutes:\n\n${address}`;
}
