import { errorFields } from "../base/error-fields.ts";
import { z } from "zod";
import { type Deferred, deferred } from "../base/async.ts";
import { sentenceOf } from "../base/errors.ts";
import { type Log, silentLog } from "../base/log.ts";
import type { SessionId } from "../message/ids.ts";
import type { Location, ToolKind } from "../message/part.ts";
import type { ApprovalMode } from "../message/message.ts";
import type { Approvals, ApprovalScope } from "./approvals.ts";
import { judge, type Judgement } from "./judge.ts";
import type { Decision, PermissionRequest, Rule, Ruleset } from "./rule.ts";

/** A call that wants to run, with everything that a person should see of it. */
export interface GateCall {
  readonly sessionId: SessionId;
  readonly callId: string;
  readonly agent: string;
  /** The step that makes the call; a no to one of its calls rejects the rest of them. */
  readonly step?: string;
  /** The tool's name, where a tool makes the call. */
  readonly tool?: string;
  readonly title: string;
  readonly kind: ToolKind;
  readonly locations: readonly Location[];
  readonly preview?: QuestionPreview | undefined;
  readonly input: unknown;
  readonly permissions: readonly PermissionRequest[];
  /** Rules that must allow it beside the agent's; see {@link Authority}. */
  readonly limits?: readonly Ruleset[] | undefined;
  /** Rules of those for whom the agent works; see {@link Authority}. */
  readonly within?: readonly Ruleset[] | undefined;
  /** The session under which the person is asked, where it is not the one that makes the call. */
  readonly askedUnder?: SessionId | undefined;
}

/** Whole texts before and after, for each file that the call would change. */
export interface QuestionPreview {
  readonly diffs?: readonly { path: string; oldText: string | null; newText: string }[];
  readonly text?: string;
}

/** What the person is asked: only the permissions that the rules and approvals leave open. */
export interface Question extends GateCall {
  /** Patterns that "always" would allow; empty where only this one call can be allowed. */
  readonly always: readonly string[];
  /** For how long "always" may hold: for the project only what runs or changes something in the workspace. */
  readonly scopes: readonly ApprovalScope[];
  /** Why it is asked, the first reason of the strictest part. */
  readonly reason: string;
}

const answerSchema = z.discriminatedUnion("reply", [
  z.object({ reply: z.literal("once") }),
  z.object({ reply: z.literal("always"), scope: z.enum(["session", "project"]) }),
  z.object({ reply: z.literal("reject"), feedback: z.string().optional() }),
  z.object({ reply: z.literal("cancelled") }),
]);
export type Answer = z.infer<typeof answerSchema>;

/** Puts a question to the user; rejects where it gets no answer. The signal aborts when nobody needs the answer any more. */
export type Ask = (question: Question, signal: AbortSignal) => Promise<Answer>;

/** One decision, for the record. Holds no contents of files or commands beyond the subject. */
export interface AuditEntry {
  sessionId: SessionId;
  callId: string;
  agent: string;
  outcome: Decision["outcome"];
  /** Who decided. */
  by: "rules" | "approval" | "mode" | "plugin" | "person" | "failure" | "signal" | "close";
  permission: string;
  subject: string;
  rule?: Rule | undefined;
  /** What went wrong, where something did. */
  problem?: string;
}

export interface GateDeps {
  ask: Ask;
  approvals: Approvals;
  log?: Log;
  /** How much goes without asking now; "ask" unless given. */
  mode?: () => ApprovalMode;
  /** Rules that must allow every call now beside the call's own. */
  limits?: () => readonly Ruleset[];
  /**
   * Asked before a person is, with what the rules say; undefined where nobody is there to be asked. Must not reject.
   * An "ask" makes stricter, a "deny" denies, an "allow" allows at most what the mode "auto" would.
   */
  advise?: (call: GateCall, status: "allow" | "ask", signal: AbortSignal) => Promise<Advice> | undefined;
  /** Must not throw. */
  audit?: (entry: AuditEntry) => void;
}

/** What somebody says who decides before the person. */
export type Advice = { status: "allow" | "ask" } | { status: "deny"; by: string };

interface PendingQuestion {
  readonly call: GateCall;
  readonly rules: Ruleset;
  /** The first part that was open when it came, for the record. */
  readonly decisive: PermissionRequest | undefined;
  readonly settled: Deferred<Decision>;
  /** Aborts when it is settled, which takes its question back. */
  readonly withdrawn: AbortController;
}

/** A decision that needs no person, with who made it. */
interface ImmediateDecision {
  decision: Decision;
  by: AuditEntry["by"];
  rule?: Rule;
}

type AnswerOrFailure = Answer | { reply: "unasked"; problem: string };

/** What a session needs of its gate. */
export type Decider = Pick<Gate, "decide" | "isAllowed" | "reconsider" | "close">;

/**
 * Decides over the calls of a session and its children. One question is open at a time; the others wait. Whatever is
 * not a clear yes lets nothing run: an error, a strange answer, an answer that comes too late.
 */
export class Gate {
  readonly #deps: GateDeps;
  readonly #pending: PendingQuestion[] = [];
  /** The newest step of each session in which the user said no. */
  readonly #rejectedSteps = new Map<SessionId, string>();
  #isAsking = false;
  #isClosed = false;

  constructor(deps: GateDeps) {
    this.#deps = deps;
  }

  /** Never rejects. Settles as cancelled at once when the signal aborts. */
  async decide(call: GateCall, rules: Ruleset, signal: AbortSignal): Promise<Decision> {
    const over = this.#decideEnded(call, signal);
    if (over !== undefined) return this.#record(call, over.decision, over.by);
    const advised = await this.#applyAdvice(call, this.#decideByRules(call, rules), rules, signal);
    const known = this.#decideEnded(call, signal) ?? advised;
    if (known) return this.#record(call, known.decision, known.by, known.rule);
    const decisive = this.#createQuestion({ call, rules }).permissions.at(0);
    const settled = deferred<Decision>();
    const waiting = { call, rules, decisive, settled, withdrawn: new AbortController() };
    const onAbort = () => this.#settle(waiting, { outcome: "cancelled" }, "signal");
    signal.addEventListener("abort", onAbort, { once: true });
    this.#pending.push(waiting);
    this.#askNext();
    return waiting.settled.promise.finally(() => signal.removeEventListener("abort", onAbort));
  }

  /** The decision over a call that comes too late to be judged. */
  #decideEnded({ sessionId, step }: GateCall, signal: AbortSignal): ImmediateDecision | undefined {
    if (signal.aborted) return { decision: { outcome: "cancelled" }, by: "signal" };
    if (this.#isClosed) return { decision: rejectedByClose, by: "close" };
    if (step !== undefined && this.#rejectedSteps.get(sessionId) === step)
      return { decision: rejectedByStep, by: "person" };
    return undefined;
  }

  /** Whether it would go through without asking anybody. */
  isAllowed(call: Pick<GateCall, "permissions" | "limits" | "within">, rules: Ruleset): boolean {
    return !this.#isClosed && isAllowed(this.#judge(call, rules));
  }

  /** Settles the questions that need no answer any more, because more was allowed meanwhile. */
  reconsider(): void {
    for (const waiting of this.#pending.slice()) {
      const known = this.#decideByRules(waiting.call, waiting.rules);
      if (known) this.#settle(waiting, known.decision, known.by);
    }
  }

  /** Settles every question as rejected; what is decided from now on is rejected too. */
  close(): void {
    this.#isClosed = true;
    for (const waiting of this.#pending.slice()) this.#settle(waiting, rejectedByClose, "close");
  }

  /** What is decided without the person; undefined where the person must. */
  #decideByRules(call: GateCall, rules: Ruleset): ImmediateDecision | undefined {
    const judgements = this.#judge(call, rules);
    const denial = judgements.find(({ action, rule }) => action === "deny" && rule !== undefined);
    if (denial?.rule !== undefined) {
      const { permission, subject, rule } = denial;
      return { decision: { outcome: "denied", permission, subject, rule }, by: "rules", rule };
    }
    if (judgements.some(({ action }) => action !== "allow")) return undefined;
    const decisive = judgements.find(({ by }) => by !== "rules") ?? judgements.at(0);
    const { by = "rules", rule } = decisive ?? {};
    return { decision: { outcome: "allowed" }, by, ...(rule && { rule }) };
  }

  /** What is known, as who decides before the person makes it. A denial stands. */
  async #applyAdvice(
    call: GateCall,
    known: ImmediateDecision | undefined,
    rules: Ruleset,
    signal: AbortSignal,
  ): Promise<ImmediateDecision | undefined> {
    if (known?.decision.outcome === "denied" || call.permissions.length === 0) return known;
    const advice = await this.#deps.advise?.(call, known ? "allow" : "ask", signal);
    if (advice === undefined) return known;
    if (advice.status === "deny") return createPluginDenial(advice.by, call);
    if (advice.status === "ask") return undefined;
    return (
      known ??
      (isAllowed(this.#judge(call, rules, "auto"))
        ? { decision: { outcome: "allowed" }, by: "plugin" }
        : undefined)
    );
  }

  /** In the order of the call's permissions. */
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

  /** Resolves when the question is settled, by its answer or by something else. */
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
    return { ...call, permissions, always, scopes, reason: open[0]?.reason ?? "" };
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
      case "always":
        return this.#approve(waiting, question, answer.scope);
      case "reject":
        return this.#reject(waiting, answer.feedback);
      case "cancelled":
        return this.#settle(waiting, { outcome: "cancelled" }, "person");
      case "unasked":
        return this.#fail(waiting, answer.problem);
    }
  }

  #fail(waiting: PendingQuestion, problem: string): void {
    this.#log.warn("a permission question got no valid answer", { problem });
    this.#settle(waiting, { outcome: "unasked", problem }, "failure", problem);
  }

  /** The person's yes counts for this call even where it cannot be remembered. */
  async #approve(waiting: PendingQuestion, question: Question, scope: "session" | "project"): Promise<void> {
    const entries = question.always.length === 0 ? [] : question.permissions.flatMap(createApprovals);
    const saved = this.#deps.approvals.add(entries, question.scopes.includes(scope) ? scope : "session");
    this.#settle(waiting, { outcome: "allowed" }, "person");
    this.reconsider();
    try {
      await saved;
    } catch (error) {
      this.#log.error("an approval could not be saved and holds for this session only", {
        ...errorFields(error),
      });
    }
  }

  /** Ends the step: its other calls are rejected too, without the user's words, also those that come later. */
  #reject(waiting: PendingQuestion, feedback: string | undefined): void {
    const { sessionId, step } = waiting.call;
    this.#settle(waiting, feedback ? { outcome: "rejected", feedback } : { outcome: "rejected" }, "person");
    if (step !== undefined) this.#rejectedSteps.set(sessionId, step);
    const others = this.#pending.filter((other) => other.call.sessionId === sessionId);
    for (const other of others) this.#settle(other, rejectedByStep, "person");
  }

  /** The first time counts. */
  #settle(waiting: PendingQuestion, decision: Decision, by: AuditEntry["by"], problem?: string): void {
    const index = this.#pending.indexOf(waiting);
    if (index === -1) return;
    this.#pending.splice(index, 1);
    const permissions = waiting.decisive ? [waiting.decisive] : [];
    waiting.settled.resolve(this.#record({ ...waiting.call, permissions }, decision, by, undefined, problem));
    waiting.withdrawn.abort();
  }

  #record(call: GateCall, decision: Decision, by: AuditEntry["by"], rule?: Rule, problem?: string): Decision {
    const { sessionId, callId, agent } = call;
    const [first] = call.permissions;
    const { permission, subject } =
      decision.outcome === "denied"
        ? decision
        : { permission: first?.permission ?? "*", subject: first?.subjects[0]?.text ?? "" };
    this.#deps.audit?.({
      sessionId,
      callId,
      agent,
      outcome: decision.outcome,
      by,
      permission,
      subject,
      rule,
      ...(problem && { problem }),
    });
    return decision;
  }

  get #log(): Log {
    return this.#deps.log ?? silentLog;
  }
}

const rejectedByClose: Decision = { outcome: "rejected", cause: "closed" };
const rejectedByStep: Decision = { outcome: "rejected", cause: "step" };

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

/** Commands, and changes of files inside the workspace, whose paths are relative. */
function mayHoldForProject({ permission, always }: PermissionRequest): boolean {
  if (permission === "edit") return always.every((pattern) => !/^(?:[/~\\]|[A-Za-z]:)/.test(pattern));
  return permission === "bash";
}
