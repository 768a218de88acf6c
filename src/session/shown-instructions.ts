import type { Message } from "../message/message.ts";
import type { Part } from "../message/part.ts";

/** Paths of the instruction files of folders that the model still sees beside what it read there. */
export function shownInstructions(messages: readonly Message[]): string[] {
  return messages.flatMap(({ parts }) => parts.flatMap(shownIn));
}

function shownIn(part: Part): string[] {
  if (part.type !== "tool" || part.state.status !== "completed") return [];
  const { metadata, compactedAt } = part.state;
  const paths = compactedAt === undefined ? metadata?.["instructions"] : undefined;
  return Array.isArray(paths) ? paths.filter((path) => typeof path === "string") : [];
}
