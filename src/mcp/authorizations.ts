import { deferred, orWhenAborted } from "../base/async.ts";
import type { Elicit } from "../message/elicitation.ts";
import { authorizeInEditor, describeAuthorization } from "./editor-authorization.ts";
import type { AuthorizeOutcome } from "./oauth/oauth-flow.ts";
import type { McpServer } from "./server.ts";

export interface AuthorizationsDeps {
  readonly elicit: Elicit;
  canVisit(): boolean;
  onVisited(elicitationId: string): void;
  report(text: string, severity?: "info" | "warning"): void;
}

/** The servers of one session that the person is asked to authorize. */
export class Authorizations {
  readonly #deps: AuthorizationsDeps;
  readonly #invited = new Set<McpServer>();
  readonly #closing = new AbortController();

  constructor(deps: AuthorizationsDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves with how it went; where the editor cannot bring the person to the address, at once with the address, and
   * how it went is reported later.
   */
  ask(server: McpServer, signal: AbortSignal): Promise<string> {
    const told = deferred<string>();
    let isAnswered = false;
    const onAddress = (address: string) => {
      isAnswered = true;
      told.resolve(whereToGo(server, address));
    };
    // Who was told where to go may end the turn before they went.
    const end = this.#deps.canVisit()
      ? AbortSignal.any([signal, this.#closing.signal])
      : this.#closing.signal;
    void this.#authorize(server, onAddress, end).then((outcome) => {
      if (isAnswered) this.#tellOutcome(server, outcome);
      else told.resolve(describeAuthorization(server, outcome));
    });
    return orWhenAborted(told.promise, signal, describeAuthorization(server, { outcome: "cancelled" }));
  }

  /** Once for each server that wants it, in the background, where the editor can open addresses; others are told how. */
  invite(server: McpServer): void {
    if (server.status.state !== "needs authorization" || !this.#deps.canVisit()) return;
    if (server.isAuthorizing || this.#invited.has(server)) return;
    this.#invited.add(server);
    const onAddress = (address: string) => this.#deps.report(whereToGo(server, address));
    void this.#authorize(server, onAddress, this.#closing.signal).then((outcome) =>
      this.#tellOutcome(server, outcome),
    );
  }

  /** It may be invited again. */
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
    return authorizeInEditor(server, { ...this.#deps, onAddress }, signal);
  }

  /** What is cancelled was so by the person, or for another try, which says itself how it goes. */
  #tellOutcome(server: McpServer, outcome: AuthorizeOutcome): void {
    if (this.#closing.signal.aborted || outcome.outcome === "cancelled") return;
    const severity = outcome.outcome === "failed" ? "warning" : "info";
    this.#deps.report(describeAuthorization(server, outcome), severity);
  }
}

function whereToGo({ settings: { name } }: McpServer, address: string): string {
  return `To authorize the MCP server "${name}", open this address in your browser within five minutes:\n\n${address}`;
}
