import { posix } from "node:path";
import type { ModelRef } from "../message/model-ref.ts";

/** What a person (or a script) says, before it becomes the parts of a user message. */
export interface PromptInput {
  blocks: readonly PromptBlock[];
  /** Only the model sees it, or only the person does; by default both do. */
  system?: string;
}

export type Audience = "both" | "model" | "person";

export type PromptBlock =
  /** With `by: "model"` it is a model's text to another: what it names with `@` is not what a person chose, and is not read. */
  | { type: "text"; text: string; audience: Audience; by?: "model" }
  /** Words that the model reads elsewhere in the message: what they name with `@` comes along. */
  | { type: "mentions"; text: string }
  /** `data` is base64. */
  | { type: "media"; mime: string; data: string; name?: string }
  /** A link to something that is read when the message is made. */
  | { type: "link"; uri: string; name: string; mime?: string }
  /** A text that came with the message, perhaps an unsaved buffer. */
  | { type: "embedded"; uri: string; mime?: string; text: string }
  /** Work for an agent in a child session, queued by a command. */
  | ({ type: "task" } & QueuedTask);

export interface QueuedTask {
  prompt: string;
  agent: string;
  model: ModelRef | undefined;
  command: string;
}

/** What a command would say in the conversation, as a task. */
export function taskBlock(blocks: readonly PromptBlock[], task: Omit<QueuedTask, "prompt">): PromptBlock {
  const texts = blocks.map((block) => (block.type === "text" ? block.text : ""));
  return { type: "task", prompt: texts.filter((text) => text !== "").join("\n\n"), ...task };
}

/** The person's own words, for titles and commands. */
export function textOf(input: PromptInput): string {
  return input.blocks
    .filter((block) => block.type === "text" && block.audience !== "model")
    .map((block) => (block.type === "text" ? block.text : ""))
    .join("\n")
    .trim();
}

/** What a message is about, for its title: the person's own words, or the names of what they sent without any. */
export function subjectOf(input: PromptInput): string {
  return textOf(input) || input.blocks.flatMap(sentNames).join(", ");
}

function sentNames(block: PromptBlock): string[] {
  switch (block.type) {
    case "link":
      return [block.name];
    case "embedded":
      return [posix.basename(block.uri)];
    case "media":
      return [block.name === undefined ? block.mime : posix.basename(block.name)];
    case "text":
    case "mentions":
    case "task":
      return [];
  }
}
