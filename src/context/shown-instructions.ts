import type { Instruction } from "../instruction/instructions.ts";
import type { Message } from "../message/message.ts";
import type { Part } from "../message/part.ts";

/** Tracks the instruction files that the model has seen. The messages are searched only after they were replaced. */
export class ShownInstructions {
  readonly paths = new Set<string>();
  /** The messages that were searched. */
  #known: readonly Message[] | undefined;

  /** Updates the paths: `instructions`, and those in the messages. */
  note(messages: readonly Message[], instructions: readonly Instruction[]): void {
    if (messages !== this.#known) {
      this.paths.clear();
      for (const path of messages.flatMap(({ parts }) => parts.flatMap(shownIn))) this.paths.add(path);
      this.#known = messages;
    }
    for (const { path } of instructions) this.paths.add(path);
  }

  /** Call it after outputs were cleared. */
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
