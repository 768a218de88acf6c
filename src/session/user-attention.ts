import type { Project } from "../conversation/project.ts";
import { noTokens, type TurnResult } from "../conversation/turn-result.ts";
import type { SessionHooks } from "../hook/session-hooks.ts";
import type { SessionInfo } from "../message/message.ts";
import type { Log } from "../base/log.ts";
import { orAfter } from "../base/async.ts";
import { errorFields } from "../base/error-fields.ts";

export interface UserAttentionDeps {
  readonly info: () => SessionInfo;
  readonly project: () => Project;
  readonly hooks: () => Promise<SessionHooks | undefined>;
  readonly log: Log;
}

/** A question that is answered within this time needs no notification. */
const answerWaitMs = 300;

/** The kinds of questions, as hooks know them. */
export type QuestionKind = "permission_prompt" | "elicitation_dialog";

/** Notifies an absent user: of questions that wait, and of the ends of turns. */
export class UserAttention {
  readonly #deps: UserAttentionDeps;
  readonly #running = new Set<Promise<void>>();
  #turnStart = 0;

  constructor(deps: UserAttentionDeps) {
    this.#deps = deps;
  }

  beginTurn(): void {
    this.#turnStart = performance.now();
  }

  /** Notifies the user unless the question is answered at once, such as by a program. */
  noticeQuestion(text: string, kind: QuestionKind, answer: Promise<unknown>): void {
    const { notify: isNotifying, openHooks } = this.#deps.project();
    if (isNotifying === undefined && openHooks === undefined) return;
    const answered = answer.then(
      () => true,
      () => true,
    );
    const notify = async () => {
      if (await orAfter(answered, answerWaitMs, false)) return;
      const message = kind === "permission_prompt" ? `Asks for permission: ${text}` : `Asks: ${text}`;
      await Promise.all([this.#notify("question", message), this.#runHooks(message, kind)]);
    };
    this.#track(notify());
  }

  /** The user knows of turns that they cancelled, and of commands that answer at once. */
  noticeEnd(result: TurnResult | undefined): void {
    if (result === undefined || result.end === "cancelled") return;
    if (result.end !== "failed" && result.tokens === noTokens) return;
    const message = result.end === "failed" ? `Failed: ${result.error.message}` : "Finished";
    const seconds = (performance.now() - this.#turnStart) / 1_000;
    this.#track(this.#notify("turn-end", message, seconds));
  }

  /** Resolves when running notifications have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  async #notify(event: "turn-end" | "question", message: string, seconds?: number): Promise<void> {
    const { notify } = this.#deps.project();
    const { id, title = "Fairlead" } = this.#deps.info();
    await notify?.({ event, session: id, title, message, ...(seconds !== undefined && { seconds }) });
  }

  async #runHooks(message: string, kind: QuestionKind): Promise<void> {
    const hooks = await this.#deps.hooks();
    await hooks?.notify(message, kind, new AbortController().signal);
  }

  #track(running: Promise<void>): void {
    const tracked: Promise<void> = running
      .catch((error: unknown) => this.#deps.log.warn("notification failed", errorFields(error)))
      .finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }
}
