import { once } from "../base/async.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { loadPart } from "../base/part.ts";
import type { Endpoint } from "./client.ts";
import type { Send } from "./http.ts";
import type { ModelRequest, StepEvent } from "./model.ts";

type Call = (request: ModelRequest, endpoint: Endpoint) => AsyncIterable<StepEvent>;

/** Loads what calls models, the SDK among it. */
export const loadCalls = () => import("./stream.ts");

/** Model calls. What makes them loads with the first one. */
export class LateCalls {
  readonly #load: () => Promise<Call>;

  constructor({ send, log }: { send: Send; log: Log }) {
    this.#load = once(async () => {
      const { Clients, streamStep } = await loadPart(loadCalls);
      const clients = new Clients(send);
      return (request, endpoint) => streamStep(request, endpoint, { clients, log });
    });
  }

  /** Never throws, as {@link StepEvent} says. */
  stream(request: ModelRequest, endpoint: Endpoint): AsyncIterable<StepEvent> {
    const open = async () => (await this.#load())(request, endpoint);
    return { [Symbol.asyncIterator]: () => new LateIterator(open) };
  }
}

const ended = { done: true, value: undefined } as const;
const nothing: AsyncIterator<StepEvent> = { next: async () => ended };

/** Hands on what it opens, without a step of its own for each event once that is there. */
class LateIterator implements AsyncIterator<StepEvent> {
  readonly #open: () => Promise<AsyncIterable<StepEvent>>;
  #opened: AsyncIterator<StepEvent> | undefined;

  constructor(open: () => Promise<AsyncIterable<StepEvent>>) {
    this.#open = open;
  }

  next(): Promise<IteratorResult<StepEvent>> {
    return this.#opened === undefined ? this.#first() : this.#opened.next();
  }

  async return(): Promise<IteratorResult<StepEvent>> {
    this.#opened ??= nothing;
    await this.#opened.return?.();
    return ended;
  }

  async #first(): Promise<IteratorResult<StepEvent>> {
    try {
      const events = await this.#open();
      // Whoever asked again or left meanwhile was first.
      this.#opened ??= events[Symbol.asyncIterator]();
    } catch (thrown) {
      if (this.#opened !== undefined) return ended;
      this.#opened = nothing;
      const error = { code: "internal", message: messageOf(thrown), retryable: false } as const;
      return { done: false, value: { type: "failed", error } };
    }
    return this.#opened.next();
  }
}
