import { errorFields } from "../base/error-fields.ts";
import { z } from "zod";
import { type Deferred, deferred } from "../base/async.ts";
import { sentenceOf } from "../base/errors.ts";
import { type Log, silentLog } from "../base/log.ts";
import { excerpt } from "../base/text/excerpt.ts";
import type { SessionId } from "../message/ids.ts";
import type { CallDecision, Location, ToolKind } from "../message/part.ts";
import type { ApprovalMode } from "../message/message.ts";
import type { Approvals, ApprovalScope } from "./approvals.ts";
import { describeIrreversible, judge, type Judgement } from "./judge.ts";
import {
  connectPermission,
  type Decision,
  type PermissionRequest,
  type QuestionAnswers,
  type Rule,
  type Ruleset,
  sandboxPermission,
} from "./rule.ts";

/** A call to decide, with everything that the user should see of it. */
export interface GateCall {
  readonly sessionId: SessionId;
  readonly callId: string;
  readonly agent: string;
  /** The step that makes the call; rejecting one of its calls rejects the others. */
  readonly step?: string;
  /** The tool's name, if a tool makes the call. */
  readonly tool?: string;
  readonly title: string;
  readonly kind: ToolKind;
  readonly locations: readonly Location[];
  readonly preview?: QuestionPreview | undefined;
  readonly input: unknown;
  readonly permissions: readonly PermissionRequest[];
  /** The possible answers; undefined for the usual ones. */
  readonly answers?: QuestionAnswers | undefined;
  /** Further rules that must allow it; see {@link Authority}. */
  readonly limits?: readonly Ruleset[] | undefined;
  /** Rules of the parent agents; see {@link Authority}. */
  readonly within?: readonly Ruleset[] | undefined;
  /** The advice of hooks, which has the same effect as that of a plugin. */
  readonly advice?: "allow" | "ask" | undefined;
  /** The session under which the user is asked, if not the session of the call. */
  readonly askedUnder?: SessionId | undefined;
  /** Receives the decision as it is stored with the call. Must not throw. */
  readonly onDecided?: ((decision: CallDecision) => void) | undefined;
}

/** The full text before and after, for each file that the call would change. */
export interface QuestionPreview {
  readonly diffs?: readonly { path: string; oldText: string | null; newText: string; isDeleted?: boolean }[];
  readonly text?: string;
  /** Shown with its format. */
  readonly markdown?: string;
}

/** A question to the user, with only the permissions that rules and approvals leave open. */
export interface Question extends GateCall {
  /** Patterns that "always allow" offers; empty if only this call can be allowed. */
  readonly always: readonly string[];
  /** Scopes that "always allow" offers; the project only for commands and edits inside the workspace. */
  readonly scopes: readonly ApprovalScope[];
  /** Why the question is asked: what cannot be undone, else the first open reason. */
  readonly reason: string;
}

const answerSchema = z.discriminatedUnion("reply", [
  z.object({ reply: z.literal("once") }),
  /** The user chose `allowOther` of {@link QuestionAnswers}. */
  z.object({ reply: z.literal("other") }),
  z.object({ reply: z.literal("always"), scope: z.enum(["session", "project"]) }),
  z.object({
    reply: z.literal("reject"),
    feedback: z.string().optional(),
    /** Whether the user may be asked for the reason. */
    mayAskWhy: z.boolean().optional(),
  }),
  z.object({ reply: z.literal("cancelled") }),
]);
export type Answer = z.infer<typeof answerSchema>;

/** Asks the user; rejects without an answer. The signal aborts when the question is withdrawn. */
export type Ask = (question: Question, signal: AbortSignal) => Promise<Answer>;

/** Asks the user for the reason of a rejection; undefined if they give none. */
export type AskWhy = (question: Question, signal: AbortSignal) => Promise<string | undefined>;

export interface GateDeps {
  ask: Ask;
  askWhy?: AskWhy;
  approvals: Approvals;
  log?: Log;
  /** The current approval mode; "ask" by default. */
  mode?: () => ApprovalMode;
  /** Current limits of every call, in addition to the call's own. */
  limits?: () => readonly Ruleset[];
  /**
   * Returns the plugins' advice on the result of the rules; undefined without plugins. Must not reject.
   * An "ask" makes it stricter, a "deny" is final, an "allow" allows at most what the mode "auto" would.
   */
  advise?: (call: GateCall, status: "allow" | "ask", signal: AbortSignal) => Promise<Advice> | undefined;
  /** Receives the decision on each call, for clients that show it. Must not throw. */
  onDecided?: (callId: string, decision: CallDecision) => void;
}

/** The advice of a plugin, before the user is asked. */
export type Advice = { status: "allow" | "ask" } | { status: "deny"; by: string };

interface PendingQuestion {
  readonly call: GateCall;
  readonly rules: Ruleset;
  /** The first open permission when the call came, to be stored with the decision. */
  readonly decisive: PermissionRequest | undefined;
  readonly settled: Deferred<Decision>;
  /** Aborts when the call is settled, which withdraws its question. */
  readonly withdrawn: AbortController;
  /** The user rejected it or another call of its step, and is asked for the reason. Nothing can allow it anymore. */
  isRejected: boolean;
}

/** A decision without the user, and its source. */
interface ImmediateDecision {
  decision: Decision;
  by: CallDecision["by"];
  rule?: Rule;
}

type Rejection = Extract<Answer, { reply: "reject" }>;
type AnswerOrFailure = Answer | { reply: "unasked"; problem: string };

/** The decision on a call that ended before it was judged; later for a step whose rejection is being explained. */
interface EndedDecision {
  decision: Decision | Promise<Decision>;
  by: CallDecision["by"];
  rule?: Rule;
}

/** The methods of the gate that a session uses. */
export type Decider = Pick<Gate, "decide" | "isAllowed" | "reconsider" | "close">;

/**
 * Decides on the calls of a session and its children.
 * - One question is open at a time; the others wait.
 * - Only a valid "allow" lets a call run; errors, invalid and late answers do not.
 */
export class Gate {
  readonly #deps: GateDeps;
  readonly #pending: PendingQuestion[] = [];
  /** The newest rejected step of each session, with the decision on its other calls. */
  readonly #rejectedSteps = new Map<SessionId, { step: string; decision: Promise<Decision> }>();
  #isAsking = false;
  #isClosed = false;

  constructor(deps: GateDeps) {
    this.#deps = deps;
  }

  /** Never rejects. Settles as cancelled at once when the signal aborts. */
  async decide(call: GateCall, rules: Ruleset, signal: AbortSignal): Promise<Decision> {
    const over = this.#decideEnded(call, signal);
    if (over !== undefined) return this.#record(call, await over.decision, over.by);
    const advised = await this.#applyAdvice(call, this.#decideByRules(call, rules), rules, signal);
    const known = this.#decideEnded(call, signal) ?? advised;
    if (known) return this.#record(call, await known.decision, known.by, known.rule);
    const decisive = this.#createQuestion({ call, rules }).permissions.at(0);
    const settled = deferred<Decision>();
    const withdrawn = new AbortController();
    const waiting = { call, rules, decisive, settled, withdrawn, isRejected: false };
    const onAbort = () => this.#settle(waiting, { outcome: "cancelled" }, "signal");
    signal.addEventListener("abort", onAbort, { once: true });
    this.#pending.push(waiting);
    this.#askNext();
    return waiting.settled.promise.finally(() => signal.removeEventListener("abort", onAbort));
  }

  /** Returns the decision if the call is cancelled, the gate closed or the step rejected. */
  #decideEnded({ sessionId, step }: GateCall, signal: AbortSignal): EndedDecision | undefined {
    if (signal.aborted) return { decision: { outcome: "cancelled" }, by: "signal" };
    if (this.#isClosed) return { decision: rejectedByClose, by: "close" };
    const rejected = this.#rejectedSteps.get(sessionId);
    if (step === undefined || rejected?.step !== step) return undefined;
    return { decision: rejected.decision, by: "person" };
  }

  /** Whether the call is allowed without a question. */
  isAllowed(call: Pick<GateCall, "permissions" | "limits" | "within">, rules: Ruleset): boolean {
    return !this.#isClosed && isAllowed(this.#judge(call, rules));
  }

  /** Settles the questions that new approvals or modes have answered. */
  reconsider(): void {
    for (const waiting of this.#pending.filter(({ isRejected }) => !isRejected)) {
      const known = this.#decideByRules(waiting.call, waiting.rules);
      if (known) this.#settle(waiting, known.decision, known.by);
    }
  }

  /** Rejects every open question and every later call. */
  close(): void {
    this.#isClosed = true;
    for (const waiting of this.#pending.slice())
      if (waiting.isRejected) this.#settle(waiting, { outcome: "rejected" }, "person");
      else this.#settle(waiting, rejectedByClose, "close");
  }

  /** Returns the decision of rules, approvals and mode; undefined if the user must decide. */
  #decideByRules(call: GateCall, rules: Ruleset): ImmediateDecision | undefined {
    const mode = this.#deps.mode?.() ?? "ask";
    const judgements = this.#judge(call, rules, mode);
    const denial = judgements.find(({ action, rule }) => action === "deny" && rule !== undefined);
    if (denial?.rule !== undefined) {
      const { permission, subject, rule } = denial;
      return { decision: { outcome: "denied", permission, subject, rule }, by: "rules", rule };
    }
    if (judgements.some(({ action }) => action !== "allow")) return undefined;
    const decisive = judgements.find(({ by }) => by !== "rules") ?? judgements.at(0);
    const { by = "rules", rule } = decisive ?? {};
    const decision: Decision = { outcome: "allowed", ...(mode === "sandboxed" && { isSandboxed: true }) };
    return { decision, by, ...(rule && { rule }) };
  }

  /** Applies the plugins' advice to the decision so far; a denial is final. */
  async #applyAdvice(
    call: GateCall,
    known: ImmediateDecision | undefined,
    rules: Ruleset,
    signal: AbortSignal,
  ): Promise<ImmediateDecision | undefined> {
    if (known?.decision.outcome === "denied" || call.permissions.length === 0) return known;
    const advice = await this.#deps.advise?.(call, known ? "allow" : "ask", signal);
    if (advice?.status === "deny") return createPluginDenial(advice.by, call);
    const given = [advice?.status, call.advice];
    if (given.includes("ask")) return undefined;
    if (!given.includes("allow")) return known;
    return (
      known ??
      (isAllowed(this.#judge(call, rules, "auto"))
        ? { decision: { outcome: "allowed" }, by: "plugin" }
        : undefined)
    );
  }

  /** Returns one judgement per permission of the call. */
  #judge(
    call: Pick<GateCall, "permissions" | "limits" | "within">,
    rules: Ruleset,
    mode = this.#deps.mode?.() ?? "ask",
  ): Judgement[] {
    const { permissions, within } = call;
    const limits = [...(call.limits ?? []), ...(this.#deps.limits?.() ?? [])];
    const authority = { rules, limits, within, mode, approvals: this.#deps.approvals.rules() };
    return permissions.map((request) => judge(request, authority));
  }

  #askNext(): void {
    const [next] = this.#pending;
    if (!next || this.#isAsking) return;
    this.#isAsking = true;
    void this.#askUser(next).finally(() => {
      this.#isAsking = false;
      this.#askNext();
    });
  }

  /** Resolves when the question is settled, by its answer or otherwise. */
  async #askUser(waiting: PendingQuestion): Promise<void> {
    const question = this.#createQuestion(waiting);
    const answered = this.#requestAnswer(question, waiting.withdrawn.signal).then((answer) =>
      this.#applyAnswer(waiting, question, answer),
    );
    await Promise.race([answered, waiting.settled.promise]);
  }

  #createQuestion({ call, rules }: Pick<PendingQuestion, "call" | "rules">): Question {
    const judgements = this.#judge(call, rules);
    const isOpen = (_: unknown, index: number) => judgements[index]?.action !== "allow";
    const permissions = call.permissions.filter(isOpen);
    const open = judgements.filter(isOpen);
    const canRemember = open.every((judgement) => judgement.canRemember);
    const always = canRemember ? [...new Set(permissions.flatMap((request) => request.always))] : [];
    const scopes: ApprovalScope[] = permissions.every(mayHoldForProject)
      ? ["session", "project"]
      : ["session"];
    return { ...call, permissions, always, scopes, reason: describeQuestion(open, permissions) };
  }

  async #requestAnswer(question: Question, signal: AbortSignal): Promise<AnswerOrFailure> {
    try {
      const parsed = answerSchema.safeParse(await this.#deps.ask(question, signal));
      return parsed.success
        ? parsed.data
        : { reply: "unasked", problem: "The editor's answer was none of those offered." };
    } catch (error) {
      return { reply: "unasked", problem: sentenceOf(error) };
    }
  }

  async #applyAnswer(waiting: PendingQuestion, question: Question, answer: AnswerOrFailure): Promise<void> {
    if (waiting.withdrawn.signal.aborted) return;
    switch (answer.reply) {
      case "once":
        return this.#settle(waiting, { outcome: "allowed" }, "person");
      case "other":
        return this.#settle(waiting, { outcome: "allowed", isOther: true }, "person");
      case "always":
        return this.#approve(waiting, question, answer.scope);
      case "reject":
        return this.#reject(waiting, question, answer);
      case "cancelled":
        return this.#settle(waiting, { outcome: "cancelled" }, "person");
      case "unasked":
        return this.#fail(waiting, answer.problem);
    }
  }

  #fail(waiting: PendingQuestion, problem: string): void {
    this.#log.warn("a permission question got no valid answer", { problem });
    this.#settle(waiting, { outcome: "unasked", problem }, "failure");
  }

  /** Allows this call even if the approval cannot be saved. */
  async #approve(waiting: PendingQuestion, question: Question, scope: "session" | "project"): Promise<void> {
    const entries = question.always.length === 0 ? [] : question.permissions.flatMap(createApprovals);
    const saved = this.#deps.approvals.add(entries, question.scopes.includes(scope) ? scope : "session");
    this.#settle(waiting, { outcome: "allowed" }, "person");
    this.reconsider();
    try {
      await saved;
    } catch (error) {
      this.#log.error("approval not saved; it applies to this session only", {
        ...errorFields(error),
      });
    }
  }

  /** Rejects the call and all other calls of its step, also later ones. They wait for the user's reason. */
  async #reject(waiting: PendingQuestion, question: Question, answer: Rejection): Promise<void> {
    const { sessionId, step } = waiting.call;
    const rejected = this.#pending.filter((other) => other.call.sessionId === sessionId);
    for (const each of rejected) each.isRejected = true;
    const ofOthers = deferred<Decision>();
    if (step !== undefined) this.#rejectedSteps.set(sessionId, { step, decision: ofOthers.promise });
    const given = answer.feedback ?? (answer.mayAskWhy ? await this.#askWhy(waiting, question) : undefined);
    const feedback = given === undefined || given.trim() === "" ? {} : { feedback: given.trim() };
    this.#settle(waiting, { outcome: "rejected", ...feedback }, "person");
    const rejectedByStep: Decision = { outcome: "rejected", ...feedback, cause: "step" };
    ofOthers.resolve(rejectedByStep);
    for (const other of rejected) this.#settle(other, rejectedByStep, "person");
  }

  /** Without an answer the rejection has no reason. */
  async #askWhy(waiting: PendingQuestion, question: Question): Promise<string | undefined> {
    const { signal } = waiting.withdrawn;
    try {
      return await this.#deps.askWhy?.(question, signal);
    } catch (error) {
      if (!signal.aborted) this.#log.warn("rejection reason not asked", errorFields(error));
      return undefined;
    }
  }

  /** Settles a call once; later calls have no effect. */
  #settle(waiting: PendingQuestion, decision: Decision, by: CallDecision["by"]): void {
    const index = this.#pending.indexOf(waiting);
    if (index === -1) return;
    this.#pending.splice(index, 1);
    const permissions = waiting.decisive ? [waiting.decisive] : [];
    waiting.settled.resolve(this.#record({ ...waiting.call, permissions }, decision, by));
    waiting.withdrawn.abort();
  }

  #record(call: GateCall, decided: Decision, by: CallDecision["by"], rule?: Rule): Decision {
    const isSandboxed = decided.outcome === "allowed" && this.#deps.mode?.() === "sandboxed";
    const decision: Decision = isSandboxed ? { ...decided, isSandboxed } : decided;
    const stored = toCallDecision(call, decision, by, rule);
    call.onDecided?.(stored);
    this.#deps.onDecided?.(call.callId, stored);
    return decision;
  }

  get #log(): Log {
    return this.#deps.log ?? silentLog;
  }
}

/** Longest stored subject of a decision, in characters; the call's input has the whole. */
const subjectLimit = 300;
/** Longest stored reason of a rejection, in characters; the call's result has the whole. */
const feedbackLimit = 300;

/** Returns the decision as it is stored: without file contents, and of a command only the subject. */
function toCallDecision(
  { permissions: [first] }: GateCall,
  decision: Decision,
  by: CallDecision["by"],
  rule: Rule | undefined,
): CallDecision {
  const { outcome } = decision;
  const { permission, subject } =
    outcome === "denied"
      ? decision
      : { permission: first?.permission ?? "*", subject: first?.subjects[0]?.text ?? "" };
  const feedback = outcome === "rejected" ? decision.feedback : undefined;
  return {
    outcome,
    by,
    permission,
    subject: subject.length > subjectLimit ? `${subject.slice(0, subjectLimit)}…` : subject,
    ...(rule && { rule }),
    ...(feedback !== undefined && { feedback: excerpt(feedback, feedbackLimit) }),
  };
}

const rejectedByClose: Decision = { outcome: "rejected", cause: "closed" };

/** Maximum number of reasons in a question. */
const reasonsLimit = 4;

/** Returns everything that cannot be undone, else the reason; of several, each with its part of the call. */
function describeQuestion(open: readonly Judgement[], requests: readonly PermissionRequest[]): string {
  const irreversible = open.flatMap((judgement) => judgement.irreversible ?? []);
  if (irreversible.length > 0) return describeIrreversible(irreversible);
  const reasons = new Set(open.map(({ reason }) => reason));
  if (reasons.size <= 1) return open[0]?.reason ?? "";
  const parts = open.map(({ reason, subject }, index) => {
    const effect = requests[index]?.subjects.find(({ text }) => text === subject)?.reason;
    return effect === undefined ? reason : `it ${effect} (${reason})`;
  });
  const all = [...new Set(parts)];
  const more = all.length - reasonsLimit;
  return [...all.slice(0, reasonsLimit), ...(more > 0 ? [`${more} more`] : [])].join(", and ");
}

const isAllowed = (judgements: readonly Judgement[]): boolean =>
  judgements.every(({ action }) => action === "allow");

function createPluginDenial(plugin: string, { permissions }: GateCall): ImmediateDecision {
  const [first] = permissions;
  const permission = first?.permission ?? "*";
  const subject = first?.subjects[0]?.text ?? "";
  const rule: Rule = { permission, pattern: subject, action: "deny" };
  return { decision: { outcome: "denied", permission, subject, rule, plugin }, by: "plugin" };
}

function createApprovals({
  permission,
  always,
}: PermissionRequest): { permission: string; pattern: string }[] {
  return always.map((pattern) => ({ permission, pattern }));
}

/** Whether "always allow" may apply to the project: commands, also outside the sandbox, their hosts, and edits of relative paths. */
function mayHoldForProject({ permission, always }: PermissionRequest): boolean {
  if (permission === "edit") return always.every((pattern) => !/^(?:[/~\\]|[A-Za-z]:)/.test(pattern));
  return ["bash", sandboxPermission, connectPermission].includes(permission);
}
