import type { Emit, Usage } from "../message/event.ts";
import type { SessionId } from "../message/ids.ts";
import type { MessageInfo, SessionInfo } from "../message/message.ts";
import type { Tokens } from "../message/part.ts";
import type { Model } from "../model/model.ts";
import type { Decider } from "../permission/gate.ts";
import { Budget, type CostLimits } from "./budget.ts";
import { sumContextTokens } from "../context/context-budget.ts";
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
  /** Name of the agent shown in questions. */
  agent(): string;
  /** The model for the next message. */
  model(): Model | undefined;
  /** The parent session's tracker: a child's usage counts there too, and its limits apply. */
  parent: UsageTracker | undefined;
}

/** Counts tokens and US dollars of a session and enforces its limits. */
export class UsageTracker {
  readonly #deps: UsageTrackerDeps;
  #limits: CostLimits | undefined;
  #budget: Budget;
  /** Usage of the running turn and its tasks. */
  #turn = { cost: 0, childTokens: noTokens };
  /** Tokens in the context after the newest model call. */
  #used: number | undefined;

  constructor(deps: UsageTrackerDeps) {
    this.#deps = deps;
    this.#limits = deps.limits;
    this.#budget = new Budget(deps.limits);
    this.#used = usedContext(deps.transcript);
  }

  /** Tokens in the context after the newest model call, and the window of the model for the next message. */
  get usage(): Usage | undefined {
    if (this.#used === undefined) return undefined;
    return {
      used: this.#used,
      size: this.#deps.model()?.limit.context,
      cost: this.#deps.infoStore.info.cost,
    };
  }

  /** Tokens used by tasks of the running turn. */
  get childTokens(): Tokens {
    return this.#turn.childTokens;
  }

  /** Sets the limits; equal limits keep their progress. */
  setLimits(limits: CostLimits | undefined): void {
    if (JSON.stringify(limits) !== JSON.stringify(this.#limits)) this.#budget = new Budget(limits);
    this.#limits = limits;
  }

  beginTurn(): void {
    this.#budget.beginTurn();
    this.#turn = { cost: 0, childTokens: noTokens };
  }

  /** Whether a cost limit is reached, so that the user would be asked before the next model call. */
  get isLimitReached(): boolean {
    return this.#budget.isReached({ turn: this.#turn.cost, session: this.#deps.infoStore.info.cost });
  }

  /**
   * Returns whether another model call may be made for this session or a child. Asks the user when a limit is reached.
   */
  allows(signal: AbortSignal): Promise<"yes" | "no" | "cancelled"> {
    const { parent, infoStore, sessionId, gate, emit } = this.#deps;
    if (parent !== undefined) return parent.allows(signal);
    const spent = { turn: this.#turn.cost, session: infoStore.info.cost };
    return this.#budget.allows(spent, { sessionId, gate, emit, agent: this.#deps.agent() }, signal);
  }

  async countStep({ tokens, cost }: { tokens: Tokens; cost: number }): Promise<void> {
    const used = sumContextTokens(tokens);
    await this.#count(cost, used > 0 ? used : this.#used);
    await this.#deps.parent?.countChild(tokens, cost);
  }

  /** Counts a compaction; `left` is the estimated number of tokens in the context afterwards. */
  async countCompaction(tokens: Tokens, cost: number, left: number): Promise<void> {
    await this.#count(cost, left);
    await this.#deps.parent?.countChild(tokens, cost);
  }

  /** Adds the usage of a child session, or of a request of an MCP server. */
  async countChild(tokens: Tokens, cost: number): Promise<void> {
    this.#turn.childTokens = addTokens(this.#turn.childTokens, tokens);
    await this.#count(cost, this.#used);
    await this.#deps.parent?.countChild(tokens, cost);
  }

  /** Adds the cost of a generated title, outside of turns. */
  countTitle(titleCall: NonNullable<SessionInfo["titleCall"]>): Promise<void> {
    const { infoStore } = this.#deps;
    return infoStore.save({ cost: infoStore.info.cost + titleCall.cost, titleCall });
  }

  /** Recounts the context after visible messages changed, and emits the usage. */
  recountContext(): Promise<void> {
    return this.#count(0, usedContext(this.#deps.transcript));
  }

  /** Adds the cost and emits the usage. */
  async #count(cost: number, used: number | undefined): Promise<void> {
    const { sessionId, infoStore, emit } = this.#deps;
    this.#turn.cost += cost;
    infoStore.note({ cost: infoStore.info.cost + cost });
    this.#used = used;
    const { usage } = this;
    if (usage !== undefined) emit({ sessionId, type: "usage", usage });
  }
}

/**
 * Returns the tokens in the context after the newest model call. After a compaction its estimate is used, because its
 * own call read the old context; undefined if the program ended before it was stored.
 */
function usedContext({ messages }: Pick<Transcript, "messages">): number | undefined {
  const newest = messages.findLast(({ info }) => contextAfter(info) > 0);
  if (newest === undefined) return undefined;
  if (!isFinishedSummary(newest)) return contextAfter(newest.info);
  const compaction = messages.findLast((message) => compactionOf(message) !== undefined);
  return compaction && compactionOf(compaction)?.left;
}

function contextAfter(info: MessageInfo): number {
  return info.role === "assistant" ? sumContextTokens(info.tokens) : 0;
}
