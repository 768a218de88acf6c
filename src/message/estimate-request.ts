import { carriedText } from "./carried.ts";
import { estimateJsonOf, estimateText, estimateTextOf } from "./estimate.ts";
import type { Message } from "./message.ts";
import { clearedOutput, type Part, visibleOutput } from "./part.ts";

/** Rough token count of an image or a page. */
const mediaTokens = 1_500;

/** The parts of a request other than the messages. */
export interface RequestHead {
  readonly system: readonly string[];
  readonly tools: readonly object[];
}

/** Estimates the tokens of a whole request: system texts, tool schemas and messages. */
export function estimateRequest(request: RequestHead & { readonly messages: readonly Message[] }): number {
  return estimateHead(request) + estimateMessages(request.messages);
}

/** Estimates the tokens of system texts and tool schemas. */
export function estimateHead({ system, tools }: RequestHead): number {
  const instructions = estimateTextOf(tools, system.join("\n\n"));
  return instructions + (tools.length === 0 ? 0 : estimateJsonOf(tools));
}

export function estimateMessages(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + estimateMessage(message), 0);
}

export function estimateMessage({ parts }: Message): number {
  return parts.reduce((sum, part) => sum + estimatePart(part), 0);
}

/** Estimates the tokens of a call's result. */
export function estimateOutput(part: Part): number {
  if (part.type !== "tool") return 0;
  const { state } = part;
  if (state.status === "error") return estimateTextOf(state, state.error);
  if (state.status !== "completed") return 0;
  if (state.compactedAt !== undefined) return estimateText(clearedOutput);
  return estimateTextOf(state, visibleOutput(state)) + (state.attachments?.length ?? 0) * mediaTokens;
}

/** Estimates the tokens of a part; a call counts with its result. */
export function estimatePart(part: Part): number {
  switch (part.type) {
    case "text":
      return part.ignored ? 0 : estimateTextOf(part, part.text);
    case "file":
      return part.mime.startsWith("text/") ? 0 : mediaTokens;
    case "tool":
      return estimateInput(part.state.input) + estimateOutput(part);
    case "compaction":
      return part.carried === undefined ? 0 : estimateTextOf(part.carried, carriedText(part.carried));
    default:
      return 0;
  }
}

function estimateInput(input: unknown): number {
  return typeof input === "object" && input !== null
    ? estimateJsonOf(input)
    : estimateText(JSON.stringify(input ?? {}));
}
