import type { Message } from "../../message/message.ts";
import type { Part, ReasoningPart } from "../../message/part.ts";
import { startsTurn } from "../../message/starts-turn.ts";
import { type AssistantPart, type Data, ownData, type PromptOptions, reasoning, withData } from "./parts.ts";

export interface ThoughtContext extends PromptOptions {
  /** Whether the model of the request wrote the message. */
  readonly isOwn: boolean;
  /** Whether models that need the thoughts of a turn get those of the message. */
  readonly returnsThoughts: boolean;
}

/**
 * Returns the index of the message after which thoughts are sent back: the start of the turn in which earlier messages last
 * changed, because outputs were cleared or a summary replaced messages. Thoughts of earlier turns are omitted from then
 * on and never at another time, because omitting them alone would invalidate the provider's prompt cache.
 */
export function findThoughtsStart(messages: readonly Message[]): number {
  let changedAt = 0;
  for (const { info, parts } of messages) {
    const isSummary = info.role === "assistant" && info.summary && info.finish === "stop";
    if (isSummary) changedAt = Math.max(changedAt, info.time.created);
    for (const part of parts)
      if (part.type === "tool" && part.state.status === "completed")
        changedAt = Math.max(changedAt, part.state.compactedAt ?? 0);
  }
  return messages.findLastIndex((message) => message.info.time.created <= changedAt && startsTurn(message));
}

/**
 * Returns reasoning that keeps its position among the parts of a step. Chat completions has one field for all
 * of it.
 */
export function toReasoning(
  part: ReasoningPart,
  step: readonly Part[],
  context: ThoughtContext,
): AssistantPart[] {
  const { owner, isRefused } = context;
  const data = ownData(part, context);
  if (data === undefined || owner.api === "chat" || isRefused("thoughts")) return [];
  if (owner.api === "responses") return toItem(part, step, data, context);
  // Messages: unchanged, with its signature, or as redacted data.
  return [withData(reasoning(part.text), "anthropic", data)];
}

/** Returns reasoning for Responses: the summaries of an item in one part, with its encrypted content and without its id. */
function toItem(
  { text }: ReasoningPart,
  step: readonly Part[],
  { itemId, reasoningEncryptedContent: sealed }: Data,
  context: ThoughtContext,
): AssistantPart[] {
  const item = step
    .filter((other) => other.type === "reasoning")
    .filter((other) => ownData(other, context)?.itemId === itemId);
  if (sealed !== undefined) {
    const summaries = item.map((other) => other.text).filter((summary) => summary !== "");
    return [withData(reasoning(summaries.join("\n\n")), "openai", { reasoningEncryptedContent: sealed })];
  }
  // Open models have plain reasoning, which the SDK sends only if something is there in place of the encrypted content.
  const isPlain = item.every((other) => ownData(other, context)?.reasoningEncryptedContent === undefined);
  const isWanted = context.quirks.returnsReasoning !== "never" && context.returnsThoughts && text !== "";
  const plain = { itemId, reasoningEncryptedContent: "" };
  return isPlain && isWanted ? [withData(reasoning(text), "openai", plain)] : [];
}

/** Returns the thoughts for chat completions, in the field in which they came, if the model wants them back. */
export function chatThoughts(
  parts: readonly Part[],
  context: ThoughtContext,
): { text?: string; fields?: Data } {
  const { returnsReasoning, returnsReasoningDetails } = context.quirks;
  if (context.isRefused("thoughts")) return {};
  const hasCalls = parts.some(({ type }) => type === "tool");
  const end = parts.find((part) => part.type === "step-finish");
  const details = end && ownData(end, context);
  if (returnsReasoningDetails && hasCalls && details !== undefined) return { fields: details };
  const isWanted =
    returnsReasoning === "calls" ? hasCalls : returnsReasoning === "turn" && context.returnsThoughts;
  if (!isWanted) return {};
  const own = parts
    .filter((part) => part.type === "reasoning")
    .filter((part) => (part.providerMetadata === undefined ? context.isOwn : ownData(part, context)));
  const thoughts = own.map((part) => part.text).join("");
  // A provider that requires reasoning with calls gets a blank if there is none.
  if (thoughts === "") return returnsReasoning === "calls" ? { text: " " } : {};
  const isField = own.every((part) => ownData(part, context)?.field === "reasoning");
  return isField ? { fields: { reasoning: thoughts } } : { text: thoughts };
}
