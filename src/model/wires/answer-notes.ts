import type { Tokens } from "../../message/part.ts";
import { toTokens } from "../answer/usage.ts";
import { ReasoningRecord } from "./reasoning-record.ts";

/** What an answer says beyond the SDK's stream parts. Written while the answer is read, one per call. */
export class AnswerNotes {
  /** Why the answer is not complete. The parts before it are still streamed. */
  failure: unknown;
  /** The usage that the provider reported so far. */
  usage: Tokens | undefined;
  /** Chat completions: the field in which the thoughts came. */
  thoughtsField: "reasoning" | "reasoning_content" | undefined;
  /** Chat completions: records of the reasoning that the provider wants back. */
  readonly reasoning = new ReasoningRecord();
  /** Chat completions: thought signatures by call id, before the call itself is streamed. */
  readonly signatures = new Map<string, string>();
  /** Called when the provider sent something. */
  readonly onActivity: () => void;

  constructor(onActivity: () => void) {
    this.onActivity = onActivity;
  }

  /** Replaces the usage, except for an input that only the earlier one has: some servers report input first, output last. */
  reportUsage(usage: unknown): void {
    const tokens = toTokens(usage);
    if (tokens === undefined) return;
    const { input, cache } = tokens;
    const before = this.usage;
    const hasInput = input + cache.read + cache.write > 0;
    this.usage =
      hasInput || before === undefined ? tokens : { ...tokens, input: before.input, cache: before.cache };
  }
}
