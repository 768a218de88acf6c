import type { DraftUpdate } from "./convert.ts";

const endStates: ReadonlySet<unknown> = new Set(["completed", "failed", "cancelled"]);

/** Tracks which calls and terminals the client may cancel, as announced in their updates. */
export class Cancellable {
  readonly #isOpenCall: (callId: string) => boolean;
  readonly #calls = new Set<string>();
  /** A terminal has the id of its call. */
  readonly #terminals = new Set<string>();

  constructor(isOpenCall: (callId: string) => boolean) {
    this.#isOpenCall = (callId) => isOpenCall(callId);
  }

  hasCall(id: string): boolean {
    return this.#calls.has(id);
  }

  hasTerminal(id: string): boolean {
    return this.#terminals.has(id);
  }

  /** Adds the cancel capability to an update if it changes. */
  addCapabilities(update: DraftUpdate): DraftUpdate {
    switch (update.sessionUpdate) {
      case "tool_call_update":
        return { ...update, ...this.#change(this.#calls, update.toolCallId, endStates.has(update.status)) };
      case "terminal_update": {
        const hasExited = update.exitStatus !== undefined && update.exitStatus !== null;
        return { ...update, ...this.#change(this.#terminals, update.terminalId, hasExited) };
      }
      default:
        return update;
    }
  }

  #change(offered: Set<string>, id: string, hasEnded: boolean) {
    if (hasEnded) return offered.delete(id) ? { capabilities: null } : {};
    if (offered.has(id) || !this.#isOpenCall(id)) return {};
    offered.add(id);
    return { capabilities: { cancel: {} } };
  }
}
