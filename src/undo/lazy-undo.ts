import type { Review } from "./review.ts";
import type { Undo, UndoDeps } from "./undo.ts";

/** Loads undo, redo and the review of changes on first use: most sessions undo nothing. */
export class LazyUndo {
  readonly #deps: UndoDeps;
  #undo: Promise<Undo> | undefined;
  #review: Promise<Review> | undefined;

  constructor(deps: UndoDeps) {
    this.#deps = deps;
  }

  load(): Promise<Undo> {
    this.#undo ??= import("./undo.ts").then(({ Undo }) => new Undo(this.#deps));
    return this.#undo;
  }

  loadReview(): Promise<Review> {
    this.#review ??= import("./review.ts").then(({ Review }) => new Review(this.#deps, () => this.settle()));
    return this.#review;
  }

  /** Makes the current undo final by removing its messages. Waits for running operations. */
  async settle(): Promise<void> {
    if (this.#undo === undefined && this.#deps.revert() === undefined) return;
    await (await this.load()).settle();
  }
}
