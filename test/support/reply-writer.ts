import type { ServerResponse } from "node:http";
import type { JsonObject } from "./json.ts";
import type { CallScript, Step, Usage } from "./reply.ts";

const usualUsage: Usage = { promptTokens: 1000, completionTokens: 20 };

export interface ReplyManner {
  stream: boolean;
  model: string;
  newCallId(): string;
}

/** Plays the steps of a reply onto a response, as a stream of events or as one JSON body. */
export async function writeReply(
  response: ServerResponse,
  steps: readonly Step[],
  manner: ReplyManner,
): Promise<void> {
  const gone = untilGone(response);
  const sink = manner.stream ? eventSink(response, manner, gone) : bodySink(response, manner);
  const player = new Player(response, gone, manner, sink);
  for (const step of steps) {
    await Promise.race([player.play(step), gone]);
    if (response.destroyed || player.ended) return;
  }
  await player.conclude(true);
}

/** Where the pieces of an answer go. */
interface Sink {
  open(): void;
  delta(delta: JsonObject): Promise<void>;
  chunk(value: unknown): Promise<void>;
  bytes(bytes: Uint8Array): Promise<void>;
  conclude(end: { reason: string | undefined; usage: Usage; done: boolean }): Promise<void>;
}

class Player {
  ended = false;
  readonly #response: ServerResponse;
  readonly #gone: Promise<void>;
  readonly #manner: ReplyManner;
  readonly #sink: Sink;
  #reason: string | undefined;
  #usage = usualUsage;
  #callCount = 0;

  constructor(response: ServerResponse, gone: Promise<void>, manner: ReplyManner, sink: Sink) {
    this.#response = response;
    this.#gone = gone;
    this.#manner = manner;
    this.#sink = sink;
  }

  async play(step: Step): Promise<void> {
    switch (step.do) {
      case "text":
        return this.#sink.delta({ content: step.text });
      case "reasoning":
        return this.#sink.delta({ reasoning_content: step.text });
      case "calls":
        return this.#playCalls(step.calls);
      case "usage":
        this.#usage = step.usage;
        return undefined;
      case "finish":
        this.#reason = step.reason;
        return undefined;
      case "chunk":
        return this.#sink.chunk(step.chunk);
      case "bytes":
        return this.#sink.bytes(step.bytes);
      case "tiny":
        return this.#playTiny(step.count, step.piece);
      case "headers":
        return this.#sink.open();
      case "gate":
        return step.pass();
      case "comments":
        return this.#playComments(step.everyMs);
      case "stall":
        return this.#gone;
      case "end":
        return this.#end(step.done);
      case "status":
        return this.#playStatus(step);
      case "reset":
        return this.#reset();
    }
  }

  /** Ends as a well-behaved provider does: finish reason, usage, `[DONE]`. */
  async conclude(done: boolean): Promise<void> {
    const reason = this.#reason ?? (this.#callCount > 0 ? "tool_calls" : "stop");
    await this.#sink.conclude({ reason, usage: this.#usage, done });
  }

  async #playCalls(calls: readonly CallScript[]): Promise<void> {
    const first = this.#callCount;
    this.#callCount += calls.length;
    const rounds = Math.max(...calls.map((call) => call.pieces.length));
    for (let round = 0; round < rounds; round++) {
      for (const [at, call] of calls.entries()) await this.#playPiece(call, first + at, round);
    }
  }

  /** Only the first piece of a call carries its id and name. */
  async #playPiece(call: CallScript, index: number, round: number): Promise<void> {
    const piece = call.pieces[round];
    if (piece === undefined) return;
    const delta =
      round > 0
        ? { index, function: { arguments: piece } }
        : { index, ...this.#idOf(call), type: "function", function: { name: call.name, arguments: piece } };
    await this.#sink.delta({ tool_calls: [delta] });
  }

  #idOf({ id }: CallScript): { id?: string } {
    return id === null ? {} : { id: id ?? this.#manner.newCallId() };
  }

  async #playTiny(count: number, piece: string): Promise<void> {
    for (let sent = 0; sent < count && !this.#response.destroyed; sent++)
      await this.#sink.delta({ content: piece });
  }

  async #playComments(everyMs: number): Promise<void> {
    this.#sink.open();
    const timer = setInterval(() => this.#response.write(": keep-alive\n\n"), everyMs);
    await this.#gone;
    clearInterval(timer);
  }

  async #end(done: boolean): Promise<void> {
    this.ended = true;
    await this.#sink.conclude({ reason: this.#reason, usage: this.#usage, done });
  }

  #playStatus({ status, headers, body }: Extract<Step, { do: "status" }>): void {
    this.ended = true;
    const text = typeof body === "string" ? body : JSON.stringify(body);
    this.#response.writeHead(status, { "content-type": "application/json", ...headers }).end(text);
  }

  #reset(): void {
    this.ended = true;
    this.#response.socket?.resetAndDestroy();
  }
}

function eventSink(response: ServerResponse, manner: ReplyManner, gone: Promise<void>): Sink {
  const open = () => {
    if (response.headersSent) return;
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    response.flushHeaders();
  };
  const write = async (data: Uint8Array | string) => {
    open();
    if (!response.write(data) && !response.destroyed) await Promise.race([heard(response, "drain"), gone]);
  };
  const chunk = (value: unknown) => write(`data: ${JSON.stringify(value)}\n\n`);
  const frame = (more: JsonObject) =>
    chunk({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 0, model: manner.model, ...more });
  return {
    open,
    chunk,
    bytes: write,
    delta: (delta) => frame({ choices: [{ index: 0, delta, finish_reason: null }] }),
    async conclude({ reason, usage, done }) {
      open();
      if (reason !== undefined) {
        await frame({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });
        await frame({ choices: [], usage: usageOnWire(usage) });
      }
      if (done) await write("data: [DONE]\n\n");
      response.end();
    },
  };
}

function untilGone(response: ServerResponse): Promise<void> {
  return response.destroyed ? Promise.resolve() : heard(response, "close");
}

function heard(response: ServerResponse, event: "close" | "drain"): Promise<void> {
  return new Promise((resolve) => response.once(event, resolve));
}

/** Collects what a stream would have sent; faults of the stream's form have no meaning here. */
function bodySink(response: ServerResponse, manner: ReplyManner): Sink {
  const texts = { content: "", reasoning_content: "" };
  const calls: { id?: unknown; type: "function"; function: { name: string; arguments: string } }[] = [];
  const takeCall = (index: number, id: unknown, piece: JsonObject) => {
    const call = (calls[index] ??= {
      id,
      type: "function",
      function: { name: String(piece.name), arguments: "" },
    });
    call.function.arguments += String(piece.arguments);
  };
  return {
    open() {},
    async chunk() {},
    async bytes() {},
    async delta(delta) {
      if (typeof delta.content === "string") texts.content += delta.content;
      if (typeof delta.reasoning_content === "string") texts.reasoning_content += delta.reasoning_content;
      if (!Array.isArray(delta.tool_calls)) return;
      for (const { index, id, function: piece } of delta.tool_calls) takeCall(index, id, piece);
    },
    async conclude({ reason, usage }) {
      const message = { role: "assistant", ...texts, ...(calls.length > 0 && { tool_calls: calls }) };
      const choices = [{ index: 0, message, finish_reason: reason }];
      const head = { id: "chatcmpl-1", object: "chat.completion", created: 0, model: manner.model };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ ...head, choices, usage: usageOnWire(usage) }));
    },
  };
}

function usageOnWire(usage: Usage): JsonObject {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: usage.promptTokens + usage.completionTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
  };
}
