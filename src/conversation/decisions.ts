import type { CallDecision } from "../message/part.ts";
import type { AuditEntry } from "../permission/gate.ts";

/** Longest stored subject of a decision, in characters; the call's input has the whole. */
const subjectLimit = 300;

/** Permission decisions of calls, until the calls' parts store them. */
export class Decisions {
  readonly #byCall = new Map<string, CallDecision>();

  add({ callId, outcome, by, permission, subject, rule }: AuditEntry): void {
    const shortSubject = subject.length > subjectLimit ? `${subject.slice(0, subjectLimit)}…` : subject;
    this.#byCall.set(callId, { outcome, by, permission, subject: shortSubject, ...(rule && { rule }) });
  }

  take(callId: string): CallDecision | undefined {
    const decision = this.#byCall.get(callId);
    this.#byCall.delete(callId);
    return decision;
  }
}
