/** The current activity of a view. A session can be loaded again while its turn runs. */
export type Activity = "idle" | "inTurn" | "replaying" | "replayingInTurn";

/** Whether the client is closing the view. A closing view accepts no requests; a closed view sends nothing. */
export type Lifecycle = "open" | "closing" | "closed";

export type UpdateKind =
  /** Part of the replayed conversation. */
  | "history"
  /** Part of a turn. */
  | "turn"
  /** Whether a turn runs, for protocol versions that report it in updates. */
  | "turnState"
  /** About a call whose work continues after its turn. Precedes the questions of that work. */
  | "background"
  /** About the session: commands, options, title, usage, notices. */
  | "session";

export type Treatment = "send" | "hold" | "drop";

/**
 * How a view treats an update. Two states override the table:
 * - A paused view holds all updates that it would send, except history, which precedes the response to its request,
 *   and after a load those of jobs.
 * - A closed view drops all updates.
 */
const treatments: Readonly<Record<Activity, Readonly<Record<UpdateKind, Treatment>>>> = {
  // Work of a turn may continue in the background after its answer.
  idle: { history: "drop", turn: "drop", turnState: "send", background: "send", session: "send" },
  inTurn: { history: "drop", turn: "send", turnState: "send", background: "send", session: "send" },
  replaying: { history: "send", turn: "drop", turnState: "send", background: "send", session: "send" },
  replayingInTurn: { history: "send", turn: "hold", turnState: "send", background: "send", session: "send" },
};

/** A turn that the client waits for. */
export type TurnToken = symbol;

/** The state of one session's view: decides for each update whether it is sent, held or dropped. */
export class ViewState {
  /** Unanswered turns, in the order of their messages. The first one is running. */
  readonly #turns = new Set<TurnToken>();
  #isReplaying = false;
  #isPaused = false;
  /** Whether a load paused the view. */
  #isPausedByLoad = false;
  /** Unanswered requests that pause the view. */
  #unanswered = 0;
  #lifecycle: Lifecycle = "open";
  #held: { kind: UpdateKind; send: () => void }[] = [];

  get activity(): Activity {
    if (this.#isReplaying) return this.#turns.size > 0 ? "replayingInTurn" : "replaying";
    return this.#turns.size > 0 ? "inTurn" : "idle";
  }

  get hasTurn(): boolean {
    return this.#turns.size > 0;
  }

  get isReplaying(): boolean {
    return this.#isReplaying;
  }

  /** Whether the view accepts requests. */
  get isOpen(): boolean {
    return this.#lifecycle === "open";
  }

  treatmentOf(kind: UpdateKind): Treatment {
    if (this.#lifecycle === "closed") return "drop";
    const treatment = treatments[this.activity][kind];
    return this.#holds(kind) && treatment === "send" ? "hold" : treatment;
  }

  /** Updates of jobs after a load are not part of the replay. */
  #holds(kind: UpdateKind): boolean {
    if (!this.#isPaused || kind === "history") return false;
    const isOfJob = kind === "background" || kind === "turnState";
    return !(isOfJob && this.#isPausedByLoad && this.#unanswered === 0);
  }

  /** Holds an update. Held updates keep their order. */
  hold(kind: UpdateKind, send: () => void): void {
    this.#held.push({ kind, send });
  }

  beginTurn(): TurnToken {
    const turn = Symbol("turn");
    this.#turns.add(turn);
    return turn;
  }

  /** Whether this is the running turn. Later ones wait. */
  isRunning(turn: TurnToken): boolean {
    const [running] = this.#turns;
    return running === turn;
  }

  endTurn(turn: TurnToken): void {
    this.#turns.delete(turn);
  }

  beginReplay(): void {
    this.#isReplaying = true;
  }

  endReplay(): void {
    this.#isReplaying = false;
  }

  /** Holds updates until the next prompt. */
  pause(): void {
    this.#isPaused = true;
    this.#isPausedByLoad = false;
  }

  /** Holds updates after a load until the next request, except those of jobs. */
  pauseAfterLoad(): void {
    this.#isPaused = true;
    this.#isPausedByLoad = true;
  }

  /** Called with a request that is not a prompt. After a cancelled turn only a prompt resumes the view. */
  resumeAfterLoad(): void {
    if (this.#isPausedByLoad) this.resume();
  }

  /** Holds updates until {@link answered} was called once for each such request. */
  pauseUntilAnswered(): void {
    this.#unanswered++;
    this.#isPaused = true;
  }

  answered(): void {
    this.#unanswered--;
    if (this.#unanswered === 0) this.resume();
  }

  /** Sends the held updates and holds no more. */
  resume(): void {
    this.#isPaused = false;
    this.#isPausedByLoad = false;
    for (const { send } of this.#held.splice(0)) send();
  }

  /** Sends the held updates of the turn and of background work, which precede its response and their questions. */
  releaseTurn(): void {
    const ofTurn = this.#held.filter(({ kind }) => kind !== "session");
    this.#held = this.#held.filter(({ kind }) => kind === "session");
    for (const { send } of ofTurn) send();
  }

  beginClosing(): void {
    if (this.#lifecycle === "open") this.#lifecycle = "closing";
  }

  close(): void {
    this.#lifecycle = "closed";
    this.#held = [];
  }
}
