import type { Log } from "../base/log.ts";
import type { Emit } from "../message/event.ts";
import type { MessageId } from "../message/ids.ts";
import type { CallDecision, FileChange, ToolPart, ToolState } from "../message/part.ts";
import type { Decision } from "../permission/rule.ts";
import type { PreparedCall, ToolContext, ToolResult } from "../tool/tool.ts";
import type { Transcript } from "../conversation/transcript.ts";

export interface CallOutcome {
  /** Why the turn ends: the user said no to this call, or cancelled the turn, or the model repeats itself. */
  stop?: "rejected" | "cancelled" | "looping";
  changes: readonly FileChange[];
}

export interface ToolCallRecordDeps {
  transcript: Pick<Transcript, "putPart" | "amendParts">;
  context: Pick<ToolContext, "sessionId">;
  emit: Emit;
  log: Log;
}

/** So much of a call's live output is kept, at most twice that, for the case that its result is not waited for. */
const printedLimitCharacters = 4_000;

/** One call's part while it runs; the first terminal state counts, what comes after it is dropped. */
export class ToolCallRecord {
  part: ToolPart;
  readonly #deps: ToolCallRecordDeps;
  readonly messageId: MessageId;
  #settled = false;
  #start: number | undefined;
  /** The end of its live output, and whether there was more. */
  #printed = "";
  #isCut = false;

  constructor(deps: ToolCallRecordDeps, messageId: MessageId, part: ToolPart) {
    this.#deps = deps;
    this.messageId = messageId;
    this.part = part;
  }

  async describe(prepared: PreparedCall): Promise<void> {
    const { title, locations } = prepared;
    await this.#put({ ...this.part, title, locations: [...locations] });
  }

  /** Stored with the call's next state. */
  setInput(input: unknown): void {
    this.part = { ...this.part, state: { ...this.part.state, input } };
  }

  /** Stored with the call's next state. */
  setDecision(decision: CallDecision | undefined): void {
    if (decision !== undefined) this.part = { ...this.part, decision };
  }

  async begin(): Promise<void> {
    this.#start = Date.now();
    const state = { status: "running", input: this.part.state.input, time: { start: this.#start } } as const;
    await this.#put({ ...this.part, state });
  }

  async output(delta: string): Promise<void> {
    if (this.#settled || delta === "") return;
    this.#bufferOutput(delta);
    const { callId, id: partId } = this.part;
    const { sessionId } = this.#deps.context;
    await this.#deps.emit({
      sessionId,
      type: "tool-output",
      messageId: this.messageId,
      partId,
      callId,
      delta,
    });
  }

  async complete(result: ToolResult & { status: "completed" }, output: string): Promise<CallOutcome> {
    const { attachments, changes, metadata, title, locations } = result;
    const part = {
      ...this.part,
      title: title ?? this.part.title,
      locations: locations === undefined ? this.part.locations : [...locations],
    };
    await this.#settle(part, {
      status: "completed",
      input: part.state.input,
      output,
      ...(attachments && { attachments: [...attachments] }),
      ...(changes && { changes: [...changes] }),
      ...(metadata && { metadata }),
      time: this.#timeSpan(),
    });
    return { changes: changes ?? [] };
  }

  async fail(
    reason: (ToolState & { status: "error" })["reason"],
    error: string,
    more: { changes?: readonly FileChange[]; metadata?: Record<string, unknown> } = {},
  ): Promise<CallOutcome> {
    const changes = more.changes ?? [];
    await this.#settle(this.part, {
      status: "error",
      input: this.part.state.input,
      error,
      reason,
      ...(changes.length > 0 && { changes: [...changes] }),
      ...(more.metadata && { metadata: more.metadata }),
      time: this.#timeSpan(),
    });
    return { ...((reason === "rejected" || reason === "cancelled") && { stop: reason }), changes };
  }

  /** Adds what the call changed after it was settled. */
  async addLateChanges(changes: readonly FileChange[]): Promise<void> {
    const { state } = this.part;
    if (changes.length === 0 || state.status !== "error") return;
    const paths = changes.map(({ path }) => path).join(", ");
    const error = `${state.error} It could not be stopped before it changed ${paths}.`;
    this.part = { ...this.part, state: { ...state, error, changes: [...changes] } };
    await this.#deps.transcript.amendParts(this.messageId, [this.part]);
  }

  /** Settles a call that did not come to its end. */
  abandon(reason: "cancelled" | "interrupted"): Promise<CallOutcome> {
    const printed = this.#printed.toWellFormed().trimEnd();
    if (printed === "") return this.fail(reason, abandonedText(reason));
    const what = this.#isCut ? "the end of what it had printed" : "what it had printed";
    const { start, end } = this.#timeSpan();
    const seconds = ((end - start) / 1_000).toFixed(1);
    // As a command says it that ends in time.
    const text = `${printed}\n\n[Cancelled after ${seconds} s; above is ${what}.]`;
    return this.fail(reason, text, this.part.kind === "execute" ? { metadata: { exitCode: null } } : {});
  }

  #bufferOutput(delta: string): void {
    const isLong = this.#printed.length + delta.length > 2 * printedLimitCharacters;
    this.#isCut ||= isLong;
    // Of a long piece nothing is copied to be cut.
    const printed = isLong && delta.length >= printedLimitCharacters ? delta : this.#printed + delta;
    this.#printed = isLong ? printed.slice(-printedLimitCharacters) : printed;
  }

  /** Where nobody answered, the call failed and the turn goes on. */
  refuse(decision: Refusal): Promise<CallOutcome> {
    const { outcome } = decision;
    return this.fail(outcome === "unasked" ? "failed" : outcome, refusalText(decision));
  }

  #timeSpan() {
    const end = Date.now();
    return { start: this.#start ?? end, end };
  }

  async #settle(part: ToolPart, state: ToolState): Promise<void> {
    if (this.#settled) return;
    this.#settled = true;
    this.part = { ...part, state };
    this.#log(state);
    await this.#deps.transcript.putPart(this.messageId, this.part);
  }

  #log(state: ToolState): void {
    const { tool, callId } = this.part;
    const ms = this.#start === undefined ? undefined : Date.now() - this.#start;
    const end = state.status === "error" ? state.reason : state.status;
    this.#deps.log.info("a call ended", { tool, callId, ms, end });
  }

  async #put(part: ToolPart): Promise<void> {
    if (this.#settled) return;
    this.part = part;
    await this.#deps.transcript.putPart(this.messageId, part);
  }
}

/** What the model is told of a call that did not come to its end. */
export function abandonedText(reason: "cancelled" | "interrupted"): string {
  return reason === "cancelled"
    ? "The person cancelled this call before it finished."
    : "This call was cut off before its arguments were complete; it was not run.";
}

/** A decision that lets the call not run. */
export type Refusal = Exclude<Decision, { outcome: "allowed" }>;

/** What the model reads about a call that may not run. */
export function refusalText(decision: Refusal): string {
  switch (decision.outcome) {
    case "denied": {
      const { rule, subject, permission, plugin } = decision;
      if (plugin !== undefined)
        return `Not run. The plugin ${plugin} forbids ${permission} for "${subject}". Find a way that does not need it, or tell the user what you would need.`;
      const source = `${rule.permission}: "${rule.pattern}" is set to ${rule.action}`;
      return `Not run. A rule forbids ${permission} for "${subject}" (${source}). Find a way that does not need it, or tell the user what you would need.`;
    }
    case "rejected":
      if (decision.cause === "step") return "Not run. The user said no to another call of this step.";
      if (decision.cause === "closed")
        return "Not run. The session was closed before the user answered. Nobody said yes or no.";
      return decision.feedback === undefined
        ? "Not run. The user said no to this call. Do not try it again in another form."
        : `Not run. The user said no to this call and wrote: ${decision.feedback}`;
    case "unasked":
      return `Not run. The user could not be asked, so nobody said yes or no: ${decision.problem} Go on without it. Do not look for a way around it; say in your answer what you wanted to do and that it could not be asked.`;
    case "cancelled":
      return abandonedText("cancelled");
  }
}
