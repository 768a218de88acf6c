import { posix } from "node:path";
import type { MessageId } from "../message/ids.ts";
import type { ModelRef } from "../message/model-ref.ts";
import type { TraceContext } from "../message/trace-context.ts";

/** A prompt of a user or a script, before it becomes the parts of a user message. */
export interface PromptInput {
  blocks: readonly PromptBlock[];
  /** Additional system text. */
  system?: string;
  trace?: TraceContext;
  /** The id under which the client knows the message before it is stored. */
  injectId?: MessageId;
}

/** Who sees a text; by default both. */
export type Audience = "both" | "model" | "person";

export type PromptBlock =
  /** With `by: "model"`, a model wrote the text for another: its `@` mentions are not resolved. */
  | { type: "text"; text: string; audience: Audience; by?: "model" }
  /** Text that is elsewhere in the message; only its `@` mentions are resolved. */
  | { type: "mentions"; text: string }
  /** `data` is base64. */
  | { type: "media"; mime: string; data: string; name?: string }
  /** A link whose content is read when the message is created. */
  | { type: "link"; uri: string; name: string; mime?: string }
  /** A text sent with the message, such as an unsaved buffer. */
  | { type: "embedded"; uri: string; mime?: string; text: string }
  /** Work for an agent in a child session, queued by a command. */
  | ({ type: "task" } & QueuedTask);

export interface QueuedTask {
  prompt: string;
  agent: string;
  model: ModelRef | undefined;
  command: string;
}

/** Turns a command's texts into a task. */
export function taskBlock(blocks: readonly PromptBlock[], task: Omit<QueuedTask, "prompt">): PromptBlock {
  const texts = blocks.map((block) => (block.type === "text" ? block.text : ""));
  return { type: "task", prompt: texts.filter((text) => text !== "").join("\n\n"), ...task };
}

/** Returns the user's own text, for titles and commands. */
export function textOf(input: PromptInput): string {
  return input.blocks
    .filter((block) => block.type === "text" && block.audience !== "model")
    .map((block) => (block.type === "text" ? block.text : ""))
    .join("\n")
    .trim();
}

/** Returns the subject of a message for its title: the user's text, otherwise the names of the attachments. */
export function subjectOf(input: PromptInput): string {
  return textOf(input) || input.blocks.flatMap(attachmentNames).join(", ");
}

function attachmentNames(block: PromptBlock): string[] {
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
