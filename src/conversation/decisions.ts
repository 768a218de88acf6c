import { excerpt } from "../base/text/excerpt.ts";
import type { CallDecision } from "../message/part.ts";
import type { AuditEntry } from "../permission/gate.ts";

/** Longest stored subject of a decision, in characters; the call's input has the whole. */
const subjectLimit = 300;
/** Longest stored reason of a rejection, in characters; the call's result has the whole. */
const feedbackLimit = 300;

/** Permission decisions of calls, until the calls' parts store them. */
export class Decisions {
  readonly #byCall = new Map<string, CallDecision>();

  add({ callId, outcome, by, permission, subject, rule, feedback }: AuditEntry): CallDecision {
    const shortSubject = subject.length > subjectLimit ? `${subject.slice(0, subjectLimit)}…` : subject;
    const decision = {
      outcome,
      by,
      permission,
      subject: shortSubject,
      ...(rule && { rule }),
      ...(feedback !== undefined && { feedback: excerpt(feedback, feedbackLimit) }),
    };
    this.#byCall.set(callId, decision);
    return decision;
  }

  take(callId: string): CallDecision | undefined {
    const decision = this.#byCall.get(callId);
    this.#byCall.delete(callId);
    return decision;
  }
}
