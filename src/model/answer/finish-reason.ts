import type { FinishReason } from "../../message/message.ts";

/** The finish reasons of all providers. */
const reasons: ReadonlyMap<string, FinishReason> = new Map([
  ["stop", "stop"],
  ["end_turn", "stop"],
  ["pause_turn", "stop"],
  ["eos", "stop"],
  ["eos_token", "stop"],
  ["stop_sequence", "stop"],
  ["completed", "stop"],
  ["length", "length"],
  ["max_tokens", "length"],
  ["max_output_tokens", "length"],
  ["model_length", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_calls", "tool-calls"],
  ["function_call", "tool-calls"],
  ["tool_use", "tool-calls"],
  ["tool_call", "tool-calls"],
  ["content_filter", "content-filter"],
  ["safety", "content-filter"],
  ["recitation", "content-filter"],
  ["sensitive", "content-filter"],
  ["refusal", "refusal"],
]);

export const toFinishReason = (raw = ""): FinishReason => reasons.get(raw.toLowerCase()) ?? "unknown";
