import type { Instruction } from "../instruction/instructions.ts";
import type { Message } from "../message/message.ts";
import type { Part } from "../message/part.ts";

/**
 * Which instruction files the model has before it. What a turn reads is added as it is read; the messages are looked
 * through only where others count than before, not with each turn.
 */
export class ShownInstructions {
  readonly paths = new Set<string>();
  /** The messages whose files are known. */
  #known: readonly Message[] | undefined;

  /** Brings it to what the model sees now: `instructions` in any case, and beside them what stands in the messages. */
  note(messages: readonly Message[], instructions: readonly Instruction[]): void {
    if (messages !== this.#known) {
      this.paths.clear();
      for (const path of messages.flatMap(({ parts }) => parts.flatMap(shownIn))) this.paths.add(path);
      this.#known = messages;
    }
    for (const { path } of instructions) this.paths.add(path);
  }

  /** Outputs went out of the model's view. */
  forget(): void {
    this.paths.clear();
    this.#known = undefined;
  }
}

function shownIn(part: Part): string[] {
  if (part.type !== "tool" || part.state.status !== "completed") return [];
  const { metadata, compactedAt } = part.state;
  const paths = compactedAt === undefined ? metadata?.["instructions"] : undefined;
  return Array.isArray(paths) ? paths.filter((path) => typeof path === "string") : [];
}
