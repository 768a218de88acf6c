import type { ModelRef } from "../message/message.ts";

/** A prompt that somebody wrote down under a name; a person calls it with a slash. */
export interface Command {
  readonly name: string;
  readonly description: string;
  /** What may follow the name. */
  readonly hint?: string | undefined;
  /** Answers the one message, instead of the session's. */
  readonly agent?: string | undefined;
  /** It came with a project that nobody has trusted yet. */
  readonly isUntrusted?: boolean | undefined;
  readonly model?: ModelRef | undefined;
  /** The reasoning effort of whichever model answers, where no model is named. */
  readonly variant?: string | undefined;
  /** Runs in a child session. */
  readonly subtask?: boolean | undefined;
  /** See {@link parseTemplate}. */
  readonly template: string;
}
