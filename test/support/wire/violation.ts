export type RuleName =
  /** Each line is one JSON-RPC message in UTF-8, ended by a newline. */
  | "line"
  /** A line has a bound. */
  | "size"
  /** Each request of the client gets exactly one answer. */
  | "answer"
  /** Each message is valid by the schema of ACP v1. */
  | "schema"
  /** Nothing is used that the client did not advertise. */
  | "capability"
  /** A current value is one of those offered. */
  | "selection"
  /** No message names a session before the client knows it or after it was closed. */
  | "session"
  /** Updates of a turn are sent only while the turn runs. */
  | "turn"
  /** No update follows a load or a cancelled turn before the next request. */
  | "silence"
  /** `tool_call` first, one terminal status, nothing after it, and one before the turn ends. */
  | "tool"
  /** States list the work in the background, which is announced before and ended in the client's view. */
  | "background";

export interface Violation {
  rule: RuleName;
  /** The entry of the log that shows it. */
  order: number;
  text: string;
}
