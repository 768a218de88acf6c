import type { CallDecision } from "../message/part.ts";
import type { AuditEntry } from "../permission/gate.ts";

/** Characters kept of what a decision was about; the call's own input has the whole. */
const subjectLimit = 300;

/** What the gate decided over calls, until their parts take it into the transcript. */
export class Decisions {
  readonly #byCall = new Map<string, CallDecision>();

  add({ callId, outcome, by, permission, subject, rule }: AuditEntry): void {
    const about = subject.length > subjectLimit ? `${subject.slice(0, subjectLimit)}…` : subject;
    this.#byCall.set(callId, { outcome, by, permission, subject: about, ...(rule && { rule }) });
  }

  take(callId: string): CallDecision | undefined {
    const decision = this.#byCall.get(callId);
    this.#byCall.delete(callId);
    return decision;
  }
}
