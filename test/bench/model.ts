import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { performance } from "node:perf_hooks";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (delta: unknown, finish: string | null = null) => ({
  id: "c",
  object: "chat.completion.chunk",
  created: 0,
  model: "m",
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const ending = (tokens: number, finish = "stop") =>
  event({
    ...chunk({}, finish),
    usage: { prompt_tokens: tokens, completion_tokens: 10, total_tokens: tokens + 10 },
  }) + "data: [DONE]\n\n";

/** Tool calls that the model makes, one per step, in this order. */
export interface ScriptedCall {
  name: string;
  input: Record<string, unknown>;
}

/** Milliseconds between two deltas of a paced answer. */
const pacedMs = 10;

/** When a request arrived and when its answer had been written, in ms of this process. */
export interface Exchange {
  asked: number;
  answered: number;
}

/** Returns the newest question in a request's body, and the number of calls answered since. */
function scriptOf(body: string) {
  const newest = body.slice(Math.max(0, body.lastIndexOf('"role":"user"')));
  const [, what, argument] = /\b(deltas|paced|calls) (\w+)/.exec(newest) ?? [];
  return { what, argument: argument ?? "1", step: newest.split('"role":"tool"').length - 1 };
}

/**
 * Answers each request at once as its newest question says: "deltas 20000" sends this many deltas at once,
 * "paced 300" sends a hundred per second, and "calls NAME" makes the calls of {@link BenchModel.scripts}, one
 * per step. Any other question gets one delta.
 */
export class BenchModel {
  readonly scripts = new Map<string, readonly ScriptedCall[]>();
  /** All requests except those for titles. */
  exchanges: Exchange[] = [];
  /** The times at which each delta of the newest paced answer was written. */
  paced: number[] = [];
  #onRequest: ((at: number) => void) | undefined;
  readonly #floods = new Map<number, string>();
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch(() => response.destroy());
  });

  static async start(): Promise<BenchModel> {
    const model = new BenchModel();
    await new Promise<void>((resolve) => model.#server.listen(0, "127.0.0.1", resolve));
    return model;
  }

  get url(): string {
    const address = this.#server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    return `http://127.0.0.1:${port}/v1`;
  }

  /** Resolves with the time of the next request that is not for a title. */
  nextRequest(): Promise<number> {
    return new Promise((resolve) => (this.#onRequest = resolve));
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = performance.now();
    const body = await text(request);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const tokens = Math.ceil(body.length / 4);
    if (!body.includes('"tools"')) return void response.end(this.#flood(1) + ending(tokens));
    this.#onRequest?.(asked);
    const { what, argument, step } = scriptOf(body);
    const call = what === "calls" ? this.scripts.get(argument)?.[step] : undefined;
    if (what === "paced") await this.#pace(response, Number(argument));
    const start =
      call === undefined ? this.#flood(what === "deltas" ? Number(argument) : 1) : callOf(call, step);
    response.end(start + ending(tokens, call === undefined ? "stop" : "tool_calls"));
    this.exchanges.push({ asked, answered: performance.now() });
  }

  #flood(count: number): string {
    const known = this.#floods.get(count);
    const made =
      known ?? Array.from({ length: count }, (_, index) => event(chunk({ content: wordOf(index) }))).join("");
    this.#floods.set(count, made);
    return made;
  }

  async #pace(response: ServerResponse, count: number): Promise<void> {
    this.paced = [];
    for (let index = 0; index < count; index++) {
      await sleep(pacedMs);
      this.paced.push(performance.now());
      response.write(event(chunk({ content: wordOf(index) })));
    }
  }
}

/** The text of the delta with this number. */
export const wordOf = (index: number): string => `word${index} `;

function callOf({ name, input }: ScriptedCall, step: number): string {
  const call = {
    index: 0,
    id: `call_${step}`,
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  };
  return event(chunk({ tool_calls: [call] }));
}
