import { PLAN_AGENT } from "../agent/plan-mode.ts";
import type { Log } from "../base/log.ts";
import type { Emit } from "../message/event.ts";
import type { MessageId } from "../message/ids.ts";
import type { CallDecision, FileChange, ToolPart, ToolState } from "../message/part.ts";
import type { Decision } from "../permission/rule.ts";
import type { PreparedCall, ToolContext, ToolResult } from "../tool/tool.ts";
import type { Transcript } from "../conversation/transcript.ts";

export interface CallOutcome {
  /** Why the turn ends: the user rejected this call or cancelled the turn, or the model repeats itself. */
  stop?: "rejected" | "cancelled" | "looping";
  changes: readonly FileChange[];
}

export interface ToolCallRecordDeps {
  transcript: Pick<Transcript, "putPart" | "settleCall" | "amendParts">;
  context: Pick<ToolContext, "sessionId" | "agent">;
  emit: Emit;
  log: Log;
}

/** Characters of live output to buffer (up to twice as many), used if the call is abandoned. */
const bufferedOutputLimit = 4_000;

/** Maximum number of changed files named after a cancelled call. */
const namedChangesLimit = 20;

/** Records the message part of one running call. The first terminal state is final; later changes are dropped. */
export class ToolCallRecord {
  part: ToolPart;
  readonly #deps: ToolCallRecordDeps;
  readonly messageId: MessageId;
  #settled = false;
  #start: number | undefined;
  /** The end of the live output; #isCut if there was more. */
  #output = "";
  #isCut = false;

  constructor(deps: ToolCallRecordDeps, messageId: MessageId, part: ToolPart) {
    this.#deps = deps;
    this.messageId = messageId;
    this.part = part;
  }

  describe(prepared: PreparedCall): void {
    const { title, locations } = prepared;
    this.#put({ ...this.part, title, locations: [...locations] });
  }

  /** Stored with the call's next state. */
  setInput(input: unknown): void {
    this.part = { ...this.part, state: { ...this.part.state, input } };
  }

  /** Stored with the call's next state, with the time that the call waited for the user. */
  setDecision(decision: CallDecision, askedAt: number): void {
    const waited = decision.by === "person" && { waitedMs: Date.now() - askedAt };
    this.part = { ...this.part, decision: { ...decision, ...waited } };
  }

  begin(): void {
    this.#start = Date.now();
    const state = { status: "running", input: this.part.state.input, time: { start: this.#start } } as const;
    this.#put({ ...this.part, state });
  }

  output(delta: string): void {
    if (this.#settled || delta === "") return;
    this.#bufferOutput(delta);
    const { callId, id: partId } = this.part;
    const { sessionId } = this.#deps.context;
    this.#deps.emit({
      sessionId,
      type: "tool-output",
      messageId: this.messageId,
      partId,
      callId,
      delta,
    });
  }

  async complete(result: ToolResult & { status: "completed" }, output: string): Promise<CallOutcome> {
    const { attachments, changes, metadata, title, locations, job } = result;
    const part = {
      ...this.part,
      title: title ?? this.part.title,
      locations: locations === undefined ? this.part.locations : [...locations],
    };
    const isSettled = await this.#settle(part, {
      status: "completed",
      input: part.state.input,
      output,
      ...(attachments && { attachments: [...attachments] }),
      ...(changes && { changes: [...changes] }),
      ...(metadata && { metadata }),
      ...(job && { job: { id: job.id } }),
      time: this.#timeSpan(),
    });
    if (isSettled) job?.settle(this.messageId, this.part);
    else job?.discard();
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

  /** Adds file changes that the call made after it was settled. */
  async addLateChanges(changes: readonly FileChange[]): Promise<void> {
    const { state } = this.part;
    if (changes.length === 0 || state.status !== "error") return;
    const paths = changes.slice(0, namedChangesLimit).map(({ path }) => path);
    const more = changes.length - paths.length;
    const names = [...paths, ...(more > 0 ? [`${more} more files`] : [])].join(", ");
    const error = `${state.error} It could not be stopped before it changed ${names}.`;
    this.part = { ...this.part, state: { ...state, error, changes: [...changes] } };
    await this.#deps.transcript.amendParts(this.messageId, [this.part]);
  }

  /** Settles a call that did not finish. */
  abandon(reason: "cancelled" | "interrupted"): Promise<CallOutcome> {
    const output = this.#output.toWellFormed().trimEnd();
    if (output === "") return this.fail(reason, abandonedText(reason));
    const what = this.#isCut ? "the end of what it had printed" : "what it had printed";
    const { start, end } = this.#timeSpan();
    const seconds = ((end - start) / 1_000).toFixed(1);
    // Same wording as in the bash tool.
    const text = `${output}\n\n[Cancelled after ${seconds} s; above is ${what}.]`;
    return this.fail(reason, text, this.part.kind === "execute" ? { metadata: { exitCode: null } } : {});
  }

  #bufferOutput(delta: string): void {
    const isLong = this.#output.length + delta.length > 2 * bufferedOutputLimit;
    this.#isCut ||= isLong;
    // Avoids copying a long delta before cutting it.
    const output = isLong && delta.length >= bufferedOutputLimit ? delta : this.#output + delta;
    this.#output = isLong ? output.slice(-bufferedOutputLimit) : output;
  }

  /** Settles a refused call. The turn continues if the user could not be asked or gave a reason. */
  async refuse(decision: Refusal): Promise<CallOutcome> {
    const { outcome } = decision;
    const refused = await this.fail(
      outcome === "unasked" ? "failed" : outcome,
      refusalText(decision, this.#deps.context.agent),
    );
    const isExplained = outcome === "rejected" && decision.feedback !== undefined;
    return isExplained ? { changes: refused.changes } : refused;
  }

  #timeSpan() {
    const end = Date.now();
    return { start: this.#start ?? end, end };
  }

  /** Returns false if the call was settled before. */
  async #settle(part: ToolPart, state: ToolState): Promise<boolean> {
    if (this.#settled) return false;
    this.#settled = true;
    this.part = { ...part, state };
    this.#log(state);
    await this.#deps.transcript.settleCall(this.messageId, this.part);
    return true;
  }

  #log(state: ToolState): void {
    const { tool, callId } = this.part;
    const ms = this.#start === undefined ? undefined : Date.now() - this.#start;
    const end = state.status === "error" ? state.reason : state.status;
    this.#deps.log.info("tool call ended", { tool, callId, ms, end });
  }

  #put(part: ToolPart): void {
    if (this.#settled) return;
    this.part = part;
    this.#deps.transcript.putPart(this.messageId, part);
  }
}

/** Returns the text for the model about a call that did not finish. */
export function abandonedText(reason: "cancelled" | "interrupted"): string {
  return reason === "cancelled"
    ? "The user cancelled this call before it finished. Do not repeat it; ask what to do instead."
    : "This call was cut off before its arguments were complete; it was not run. Call it again if it is still needed.";
}

/** A decision that prevents the call. */
export type Refusal = Exclude<Decision, { outcome: "allowed" }>;

/** Returns the text for the model about a refused call. */
export function refusalText(decision: Refusal, agent: string): string {
  switch (decision.outcome) {
    case "denied": {
      const { rule, subject, permission, plugin } = decision;
      if (plugin !== undefined)
        return `Not run. The plugin ${plugin} forbids ${permission} for "${subject}". Find a way that does not need it, or tell the user what you would need.`;
      const source = `${rule.permission}: "${rule.pattern}" is set to ${rule.action}`;
      if (agent === PLAN_AGENT && permission === "edit" && rule.pattern === "*")
        return `Not run. Plan mode changes nothing but plans, and this call changes "${subject}" (${source}). Put the change into the plan.`;
      return `Not run. A rule forbids ${permission} for "${subject}" (${source}). Find a way that does not need it, or tell the user what you would need.`;
    }
    case "rejected":
      if (decision.cause === "step")
        return decision.feedback === undefined
          ? "Not run. The user rejected another call of this step. Ask what to do instead."
          : "Not run. The user rejected another call of this step and gave a reason: see the result of that call. Call this again only if it still fits.";
      if (decision.cause === "closed")
        return "Not run. The session was closed before the user answered. There is no decision: call it again if it is still needed.";
      return decision.feedback === undefined
        ? "Not run. The user rejected this call. Do not try it again in another form: choose another way, or ask."
        : `Not run. The user rejected this call and wrote: ${decision.feedback}\n\nDo what the user wrote. Do not try this call again in another form.`;
    case "unasked":
      return `Not run. The user could not be asked, so there is no decision: ${decision.problem} Continue without it. Do not look for a way around it; say in your answer what you wanted to do and that the user could not be asked.`;
    case "cancelled":
      return abandonedText("cancelled");
  }
}
