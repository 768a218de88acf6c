import type { ToolContext } from "../tool/tool.ts";
import type { PromptInput } from "../conversation/prompt-input.ts";
import type { UserMessages } from "../user-input/user-messages.ts";

/** What comes to a turn in its middle: further messages, and that a call handed it over to another agent. */
export class Steering {
  readonly #inputs: PromptInput[] = [];
  /** Whether what is added now reaches the model in the running turn. */
  #isOpen = false;
  /** Whether the turn was handed over, which no message in the transcript says yet. */
  #isHandedOver = false;

  get isEmpty(): boolean {
    return this.#inputs.length === 0;
  }

  /** The running turn has its message: from here on it takes others too. */
  open(): void {
    this.#isOpen = true;
  }

  /** Nothing reaches the running turn any more. */
  close(): void {
    this.#isOpen = false;
    this.#isHandedOver = false;
  }

  /** False when no turn takes it. */
  add(input: PromptInput): boolean {
    if (this.#isOpen) this.#inputs.push(input);
    return this.#isOpen;
  }

  handOver(): void {
    this.#isHandedOver = true;
  }

  /** Puts into the transcript what came since the last time. */
  async flushTo(messages: UserMessages, context: ToolContext): Promise<void> {
    if (this.#isHandedOver) {
      this.#isHandedOver = false;
      await messages.addHandOver();
    }
    for (const input of this.#inputs.splice(0)) await messages.addSteering(input, context);
  }
}
