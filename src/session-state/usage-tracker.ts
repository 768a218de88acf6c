import type { Emit, Usage } from "../message/event.ts";
import { estimateMessages } from "../message/estimate-request.ts";
import type { SessionId } from "../message/ids.ts";
import type { MessageInfo, SessionInfo } from "../message/message.ts";
import type { Tokens } from "../message/part.ts";
import type { Model } from "../model/model.ts";
import type { Decider } from "../permission/gate.ts";
import { Budget, type CostLimits } from "./budget.ts";
import { contextTokens } from "../context/context-budget.ts";
import type { SessionInfoStore } from "../conversation/session-info-store.ts";
import type { Transcript } from "../conversation/transcript.ts";
import { addTokens, noTokens } from "../conversation/turn-result.ts";
import { compactionOf, isFinishedSummary } from "../conversation/visible-messages.ts";

export interface UsageTrackerDeps {
  sessionId: SessionId;
  limits: CostLimits | undefined;
  infoStore: SessionInfoStore;
  transcript: Pick<Transcript, "messages">;
  gate: Decider;
  emit: Emit;
  /** The name of the agent under which the person is asked. */
  agent(): string;
  /** The model that would answer now. */
  model(): Model | undefined;
  /** Of the session that this one works for: what a child uses counts there too, and its limits hold. */
  parent: UsageTracker | undefined;
}

/** What a session uses of tokens and of US dollars, and whether it may use more. */
export class UsageTracker {
  readonly #deps: UsageTrackerDeps;
  #limits: CostLimits | undefined;
  #budget: Budget;
  /** What the running turn and its tasks have used. */
  #turn = { cost: 0, childTokens: noTokens };
  /** Tokens in the model's context after its newest call. */
  #used: number | undefined;

  constructor(deps: UsageTrackerDeps) {
    this.#deps = deps;
    this.#limits = deps.limits;
    this.#budget = new Budget(deps.limits);
    this.#used = usedContext(deps.transcript);
  }

  /** Context in use after the newest model call, with the window of the model that would answer now. */
  get usage(): Usage | undefined {
    if (this.#used === undefined) return undefined;
    return {
      used: this.#used,
      size: this.#deps.model()?.limit.context,
      cost: this.#deps.infoStore.info.cost,
    };
  }

  /** Tokens of the tasks of the running turn. */
  get childTokens(): Tokens {
    return this.#turn.childTokens;
  }

  /** From here on these limits count; the same as before change nothing. */
  setLimits(limits: CostLimits | undefined): void {
    if (JSON.stringify(limits) !== JSON.stringify(this.#limits)) this.#budget = new Budget(limits);
    this.#limits = limits;
  }

  beginTurn(): void {
    this.#budget.beginTurn();
    this.#turn = { cost: 0, childTokens: noTokens };
  }

  /** Whether another model call may be made, for this session or a child of it. Asks the person where a limit is reached. */
  allows(signal: AbortSignal): Promise<"yes" | "no" | "cancelled"> {
    const { parent, infoStore, sessionId, gate, emit } = this.#deps;
    if (parent !== undefined) return parent.allows(signal);
    const spent = { turn: this.#turn.cost, session: infoStore.info.cost };
    return this.#budget.allows(spent, { sessionId, gate, emit, agent: this.#deps.agent() }, signal);
  }

  async countStep({ tokens, cost }: { tokens: Tokens; cost: number }): Promise<void> {
    const used = contextTokens(tokens);
    await this.#count(cost, used > 0 ? used : this.#used);
    await this.#deps.parent?.countChild(tokens, cost);
  }

  /** `left` are the tokens in the context after it, estimated. */
  async countCompaction(tokens: Tokens, cost: number, left: number): Promise<void> {
    await this.#count(cost, left);
    await this.#deps.parent?.countChild(tokens, cost);
  }

  /** What a child used counts here too. */
  async countChild(tokens: Tokens, cost: number): Promise<void> {
    this.#turn.childTokens = addTokens(this.#turn.childTokens, tokens);
    await this.#count(cost, this.#used);
    await this.#deps.parent?.countChild(tokens, cost);
  }

  /** The title is written beside the turns. */
  countTitle(titleCall: NonNullable<SessionInfo["titleCall"]>): Promise<void> {
    const { infoStore } = this.#deps;
    return infoStore.save({ cost: infoStore.info.cost + titleCall.cost, titleCall });
  }

  /** Says anew how full the context is, when other messages count than before. */
  recountContext(): Promise<void> {
    return this.#count(0, usedContext(this.#deps.transcript));
  }

  /** Counts dollars and says how full the context is now. */
  async #count(cost: number, used: number | undefined): Promise<void> {
    const { sessionId, infoStore, emit } = this.#deps;
    this.#turn.cost += cost;
    infoStore.note({ cost: infoStore.info.cost + cost });
    this.#used = used;
    const { usage } = this;
    if (usage !== undefined) await emit({ sessionId, type: "usage", usage });
  }
}

/** What the newest model call left in the context; after a compaction what it noted, for its call read what is gone. */
function usedContext({ messages }: Pick<Transcript, "messages">): number | undefined {
  const newest = messages.findLast(({ info }) => contextAfter(info) > 0);
  if (newest === undefined) return undefined;
  if (!isFinishedSummary(newest)) return contextAfter(newest.info);
  const compaction = messages.findLast((message) => compactionOf(message) !== undefined);
  return (compaction && compactionOf(compaction)?.left) ?? estimateMessages(messages);
}

function contextAfter(info: MessageInfo): number {
  return info.role === "assistant" ? contextTokens(info.tokens) : 0;
}
