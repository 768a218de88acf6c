import type { ToolContext } from "../tool/tool.ts";
import type { PromptInput } from "../conversation/prompt-input.ts";
import { InputQueue } from "../user-input/input-queue.ts";
import type { UserMessages } from "../user-input/user-messages.ts";

/** Messages added during a turn, and hand-overs to another agent. */
export class Steering {
  readonly #inputs = new InputQueue<{ input: PromptInput }>();
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
    if (this.#isOpen) this.#inputs.push({ input });
    return this.#isOpen;
  }

  /** Removes a message that was not read. Returns whether there is one. */
  remove(id: string): boolean {
    return this.#inputs.remove(({ input }) => input.injectId === id) !== undefined;
  }

  /** Replaces a message that was not read. Returns whether there is one. */
  replace(id: string, input: PromptInput): boolean {
    return this.#inputs.replace(id, input);
  }

  /** Whether the message is on its way to the transcript, or in it. */
  hasRead(id: string): boolean {
    return this.#inputs.hasRead(id);
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
    for (let next = this.#inputs.shift(); next !== undefined; next = this.#inputs.shift())
      await messages.addSteering(next.input, context);
  }
}
