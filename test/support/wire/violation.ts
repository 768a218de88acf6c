export type RuleName =
  /** Each line is one JSON-RPC message in UTF-8, ended by a newline. */
  | "line"
  /** A line has a maximum length. */
  | "size"
  /** Each request of the client gets exactly one answer. */
  | "answer"
  /** Each message is valid in the schema of ACP v1. */
  | "schema"
  /** The agent uses no capability that the client did not advertise. */
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
  /** States list the background work, which is announced before and ended in the client's view. */
  | "background";

export interface Violation {
  rule: RuleName;
  /** The log entry with the violation. */
  order: number;
  text: string;
}
