import type { ModelRef } from "../message/message.ts";

/** A stored prompt that the user runs as `/name`. */
export interface Command {
  readonly name: string;
  readonly description: string;
  /** Describes the expected arguments. */
  readonly hint?: string | undefined;
  /** Agent that answers this message, instead of the session's. */
  readonly agent?: string | undefined;
  /** The command comes from an untrusted project. */
  readonly isUntrusted?: boolean | undefined;
  readonly model?: ModelRef | undefined;
  /** Reasoning effort, used even if no model is named. */
  readonly variant?: string | undefined;
  /** Runs in a child session. */
  readonly subtask?: boolean | undefined;
  readonly template: string;
}
