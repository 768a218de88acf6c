import type { ToolContext } from "../tool/tool.ts";
import type { PromptInput } from "../conversation/prompt-input.ts";
import type { UserMessages } from "../user-input/user-messages.ts";

/** Messages added during a turn, and hand-overs to another agent. */
export class Steering {
  readonly #inputs: PromptInput[] = [];
  /** Whether the running turn accepts messages. */
  #isOpen = false;
  /** Whether a call handed the turn over and the transcript has no message about it yet. */
  #isHandedOver = false;

  get isEmpty(): boolean {
    return this.#inputs.length === 0;
  }

  /** Accepts messages from now on: the turn's own message is stored. */
  open(): void {
    this.#isOpen = true;
  }

  /** Stops accepting messages. */
  close(): void {
    this.#isOpen = false;
    this.#isHandedOver = false;
  }

  /** Returns false when no turn accepts the message. */
  add(input: PromptInput): boolean {
    if (this.#isOpen) this.#inputs.push(input);
    return this.#isOpen;
  }

  handOver(): void {
    this.#isHandedOver = true;
  }

  /** Adds the messages that arrived since the last call to the transcript. */
  async flushTo(messages: UserMessages, context: ToolContext): Promise<void> {
    if (this.#isHandedOver) {
      this.#isHandedOver = false;
      await messages.addHandOver();
    }
    for (const input of this.#inputs.splice(0)) await messages.addSteering(input, context);
  }
}
