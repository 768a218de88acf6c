import { RequestError } from "@agentclientprotocol/sdk/experimental/v2/unstable";
import type * as draft from "@agentclientprotocol/sdk/experimental/v2/unstable";
import type { Usage } from "@agentclientprotocol/sdk/unstable";
import { type Deferred, deferred } from "../../base/async.ts";
import type { MessageId } from "../../message/ids.ts";
import type { PromptInput } from "../../conversation/prompt-input.ts";
import type { TurnResult } from "../../conversation/turn-result.ts";
import { internalError, turnError } from "../errors.ts";
import { toStopReason, toUsage } from "../methods/prompt-turn.ts";
import type { SessionView } from "../view/session-view.ts";
import type { DraftUpdate } from "./convert.ts";

/** A prompt whose turn has not ended. */
interface PendingPrompt {
  /** The id under which it was queued by `session/inject`. */
  id?: MessageId | undefined;
  content: draft.ContentBlock[];
  receipt: Deferred<MessageId>;
  isStored: boolean;
}

/** The turns of one session. The response to a prompt is its message id; state updates report progress and end. */
export class Turns {
  readonly #send: (update: DraftUpdate) => void;
  /** Returns the work in the background. */
  readonly #background: () => draft.BackgroundWork[];
  /** In turn order; the first one is running. */
  readonly #prompts: PendingPrompt[] = [];
  /** Steering messages that are not stored yet. */
  readonly #steered = new Map<string, draft.ContentBlock[]>();
  #questions = 0;
  /** View of the newest prompt. */
  #view: SessionView | undefined;

  constructor(send: (update: DraftUpdate) => void, background: () => draft.BackgroundWork[]) {
    this.#send = send;
    this.#background = background;
  }

  /** The update that describes the current state. */
  get state(): StateUpdate {
    const state = this.#isRunning ? (this.#questions > 0 ? "requires_action" : "running") : "idle";
    return { sessionUpdate: "state_update", state, background: this.#background() };
  }

  get #isRunning(): boolean {
    return this.#prompts.length > 0;
  }

  /** Resolves to the message's id when the message is stored. */
  async prompt(view: SessionView, content: draft.ContentBlock[], input: PromptInput): Promise<MessageId> {
    const prompt = { id: input.injectId, content, receipt: deferred<MessageId>(), isStored: false };
    this.#view = view;
    view.state.resume();
    this.#prompts.push(prompt);
    if (this.#prompts[0] === prompt) this.#sendState({ state: "running" });
    const turn = view.runTurn(() => view.session.prompt(input));
    // Errors before the message is stored reject the receipt; later errors are reported in the state.
    void turn.then((result) => this.#end(prompt, result));
    return prompt.receipt.promise;
  }

  /** Reports the end of a turn that another client started. */
  join(view: SessionView, turn: Promise<TurnResult>): void {
    if (this.#isRunning) return;
    const prompt: PendingPrompt = { content: [], receipt: deferred<MessageId>(), isStored: true };
    this.#view = view;
    this.#prompts.push(prompt);
    void turn.then((result) => this.#end(prompt, result));
  }

  /** Adds a steering message, which is echoed when it is stored. */
  addSteering(id: string, content: draft.ContentBlock[]): void {
    this.#steered.set(id, content);
  }

  /** Removes the content of a message that was revoked. Its turn, if it has one, ends as cancelled. */
  revoke(id: string): void {
    this.#steered.delete(id);
  }

  /** Replaces the content of a message that is echoed later. */
  replace(id: string, content: draft.ContentBlock[]): void {
    if (this.#steered.has(id)) this.#steered.set(id, content);
    const queued = this.#prompts.find((prompt) => prompt.id === id);
    if (queued !== undefined) queued.content = content;
  }

  /** Called when a message was stored. Later non-steering messages of the turn are not the user's and are ignored. */
  onMessageStored(id: MessageId, isSteering: boolean): void {
    if (isSteering) {
      this.#echo(id, this.#steered.get(id));
      this.#steered.delete(id);
      return;
    }
    const [running] = this.#prompts;
    if (running === undefined || running.isStored) return;
    running.isStored = true;
    this.#echo(id, running.content);
    running.receipt.resolve(id);
  }

  #echo(messageId: MessageId, content: draft.ContentBlock[] | undefined): void {
    if (content !== undefined) this.#sendInOrder({ sessionUpdate: "user_message", messageId, content });
  }

  /** Reports `requires_action` while a question to the user is open. */
  async whileRequiresAction<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    if (this.#questions++ === 0 && this.#isRunning) this.#sendState({ state: "requires_action" });
    try {
      return await ask();
    } finally {
      if (--this.#questions === 0 && this.#isRunning && !signal.aborted)
        this.#sendState({ state: "running" });
    }
  }

  /** Reports all turns as ended and ignores their real ends; used when the process must exit. */
  abort(reason: string): void {
    if (!this.#isRunning) return;
    this.#prompts.length = 0;
    const error = internalError(reason).toErrorResponse();
    this.#sendState({ state: "idle", stopReason: "error", error });
  }

  #end(prompt: PendingPrompt, result: TurnResult): void {
    const at = this.#prompts.indexOf(prompt);
    if (at !== -1) this.#prompts.splice(at, 1);
    if (!prompt.isStored) prompt.receipt.reject(toRejection(result));
    if (at !== 0) return;
    this.#sendState(toIdleState(result));
    if (this.#prompts.length > 0) this.#sendState({ state: "running" });
    else if (result.end === "cancelled") this.#view?.state.pause();
  }

  #sendState(state: State): void {
    this.#sendInOrder({ sessionUpdate: "state_update", ...state, background: this.#background() });
  }

  #sendInOrder(update: DraftUpdate): void {
    this.#view?.sendNowOrLater("turnState", () => this.#send(update));
  }
}

type StateUpdate = DraftUpdate & { sessionUpdate: "state_update" };

type State =
  | { state: "running" | "requires_action" }
  | { state: "idle"; stopReason: string; error?: draft.Error; _meta?: { usage: Usage } };

function toIdleState(result: TurnResult): State {
  const idle = { state: "idle", _meta: { usage: toUsage(result) } } as const;
  if (result.end !== "failed") return { ...idle, stopReason: toStopReason(result.end) };
  return { ...idle, stopReason: "error", error: turnError(result.error).toErrorResponse() };
}

/** Creates the error of a prompt whose message was never stored. */
function toRejection(result: TurnResult): RequestError {
  if (result.end === "failed") return turnError(result.error);
  return cancelledError();
}

/** Creates the error of a prompt that was cancelled before its message was stored. */
export function cancelledError(): RequestError {
  return new RequestError(-32800, "The prompt was cancelled before its turn started.");
}
