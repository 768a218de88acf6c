import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { formatChanges, findChangesCard } from "../live/changes-diff.ts";
import { plainStyle } from "../terminal/style.ts";

/** Collects the model's answer: its text after the last tool call. Earlier text is commentary. */
export class AnswerText {
  #text = "";
  #part: string | null | undefined;

  /** Returns the commentary that a new tool call follows, else undefined. */
  add(update: SessionUpdate): string | undefined {
    if (update.sessionUpdate === "tool_call") {
      const changes = findChangesCard(update);
      if (changes !== undefined) {
        this.#text += `${formatChanges(changes, { style: plainStyle })}\n`;
        return undefined;
      }
      // The card at the end of a turn is not a call of the model.
      return update._meta?.["evidence"] === undefined ? this.#takeCommentary() : undefined;
    }
    if (update.sessionUpdate !== "agent_message_chunk" || update.content.type !== "text") return undefined;
    const isNewPart = this.#text !== "" && update.messageId !== this.#part;
    if (isNewPart && !this.#text.endsWith("\n")) this.#text += "\n";
    this.#part = update.messageId;
    this.#text += update.content.text;
    return undefined;
  }

  get text(): string {
    return this.#text.trim();
  }

  clear(): void {
    this.#text = "";
  }

  #takeCommentary(): string | undefined {
    const { text } = this;
    this.clear();
    return text === "" ? undefined : text;
  }
}
