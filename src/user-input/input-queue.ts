import type { PromptInput } from "../conversation/prompt-input.ts";

/** Messages that wait to be read, in order. Those with an `injectId` can be replaced and removed until then. */
export class InputQueue<Item extends { input: PromptInput }> {
  readonly #items: Item[] = [];
  readonly #readIds = new Set<string>();

  get length(): number {
    return this.#items.length;
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  /** Returns the oldest message and counts it as read. */
  shift(): Item | undefined {
    const item = this.#items.shift();
    if (item?.input.injectId !== undefined) this.#readIds.add(item.input.injectId);
    return item;
  }

  /** Removes and returns all messages, unread. */
  clear(): Item[] {
    return this.#items.splice(0);
  }

  /** Removes and returns a message that was not read. */
  remove(isWanted: (item: Item) => boolean): Item | undefined {
    const index = this.#items.findIndex(isWanted);
    return index === -1 ? undefined : this.#items.splice(index, 1)[0];
  }

  /** Replaces the content of a message that was not read; it keeps its place. Returns whether there is one. */
  replace(id: string, input: PromptInput): boolean {
    const item = this.#items.find((other) => other.input.injectId === id);
    if (item?.input.injectId === undefined) return false;
    item.input = { ...input, injectId: item.input.injectId };
    return true;
  }

  hasRead(id: string): boolean {
    return this.#readIds.has(id);
  }
}
