import { removeControls } from "../base/text/controls.ts";
import type { AgentError } from "../message/message.ts";
import type { Tokens } from "../message/part.ts";

/** How a turn ended. The promise of a turn does not reject for a model's failure or a cancellation. */
export type TurnResult = TurnEnd & {
  /** The slash command that ended the turn without running. */
  command?: { readonly name: string; readonly problem: "unknown" | "not run" };
  /** Tokens of all model calls of the turn. */
  tokens: Tokens;
};

export type TurnEnd =
  | { end: "finished" | "cancelled" | "stepLimit" | "outputLimit" | "refused" }
  | { end: "failed"; error: AgentError };

/** The text for a client that did not see the turn fail. It may contain text from a server. */
export const describeFailure = ({ message }: AgentError): string =>
  `The turn failed: ${removeControls(message)}`;

export const noTokens: Tokens = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } };

export function addTokens(left: Tokens, right: Tokens): Tokens {
  return {
    input: left.input + right.input,
    output: left.output + right.output,
    reasoning: left.reasoning + right.reasoning,
    cache: { read: left.cache.read + right.cache.read, write: left.cache.write + right.cache.write },
  };
}
