import type { ServerResponse } from "node:http";
import { usageOnWire } from "./chat-server.ts";
import type { CallScript, Step, Usage } from "./reply.ts";
import type { AnswerWriter, ServedEvent } from "./served-wire.ts";

export const usualUsage: Usage = { promptTokens: 1000, completionTokens: 20 };

export interface ReplyFormat {
  stream: boolean;
  model: string;
  /** Writes the answer's events. */
  writer: AnswerWriter;
  /** The reported usage unless the script sets it. */
  usage: Usage;
  newCallId(): string;
}

/** Plays the steps of a reply onto a response, as a stream of events or as one JSON body. */
export async function writeReply(
  response: ServerResponse,
  steps: readonly Step[],
  manner: ReplyFormat,
): Promise<void> {
  const gone = waitUntilClosed(response);
  const sink = manner.stream ? eventSink(response, manner.writer, gone) : bodySink(response, manner);
  const player = new Player(response, gone, manner, sink);
  for (const step of steps) {
    await Promise.race([player.play(step), gone]);
    if (response.destroyed || player.ended) return;
  }
  await player.conclude(true);
}

/** Receives the chunks of an answer. */
interface Sink {
  open(): void;
  text(text: string): Promise<void>;
  reasoning(text: string): Promise<void>;
  call(index: number, piece: string, started?: { name: string; id: string | undefined }): Promise<void>;
  chunk(value: unknown): Promise<void>;
  bytes(bytes: Uint8Array): Promise<void>;
  conclude(end: { reason: string | undefined; usage: Usage; done: boolean }): Promise<void>;
}

class Player {
  ended = false;
  readonly #response: ServerResponse;
  readonly #gone: Promise<void>;
  readonly #manner: ReplyFormat;
  readonly #sink: Sink;
  #reason: string | undefined;
  #usage: Usage;
  #callCount = 0;

  constructor(response: ServerResponse, gone: Promise<void>, manner: ReplyFormat, sink: Sink) {
    this.#response = response;
    this.#gone = gone;
    this.#manner = manner;
    this.#sink = sink;
    this.#usage = manner.usage;
  }

  async play(step: Step): Promise<void> {
    switch (step.do) {
      case "text":
        return this.#sink.text(step.text);
      case "reasoning":
        return this.#sink.reasoning(step.text);
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

  /** Only the first chunk of a call carries its id and name. */
  async #playPiece(call: CallScript, index: number, round: number): Promise<void> {
    const piece = call.pieces[round];
    if (piece === undefined) return;
    await this.#sink.call(index, piece, round > 0 ? undefined : { name: call.name, id: this.#idOf(call) });
  }

  #idOf({ id }: CallScript): string | undefined {
    return id === null ? undefined : (id ?? this.#manner.newCallId());
  }

  async #playTiny(count: number, piece: string): Promise<void> {
    for (let sent = 0; sent < count && !this.#response.destroyed; sent++) await this.#sink.text(piece);
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

function eventSink(response: ServerResponse, writer: AnswerWriter, gone: Promise<void>): Sink {
  const open = () => {
    if (response.headersSent) return;
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    response.flushHeaders();
  };
  const write = async (data: Uint8Array | string) => {
    open();
    if (!response.write(data) && !response.destroyed)
      await Promise.race([waitForEvent(response, "drain"), gone]);
  };
  const send = async (events: readonly ServedEvent[]) => {
    for (const { name, data } of events)
      await write(`${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`);
  };
  return {
    open,
    bytes: write,
    chunk: (value) => write(`data: ${JSON.stringify(value)}\n\n`),
    text: (text) => send(writer.text(text)),
    reasoning: (text) => send(writer.reasoning(text)),
    call: (index, piece, started) => send(writer.call(index, piece, started)),
    async conclude({ reason, usage, done }) {
      open();
      await send(writer.end(reason, usage));
      if (done && writer.done !== "") await write(writer.done);
      response.end();
    },
  };
}

function waitUntilClosed(response: ServerResponse): Promise<void> {
  return response.destroyed ? Promise.resolve() : waitForEvent(response, "close");
}

function waitForEvent(response: ServerResponse, event: "close" | "drain"): Promise<void> {
  return new Promise((resolve) => response.once(event, resolve));
}

/** Collects the stream's content for chat completions; faults of the stream's format do not apply here. */
function bodySink(response: ServerResponse, manner: ReplyFormat): Sink {
  const texts = { content: "", reasoning_content: "" };
  const calls: { id: unknown; type: "function"; function: { name: string; arguments: string } }[] = [];
  return {
    open() {},
    async chunk() {},
    async bytes() {},
    async text(text) {
      texts.content += text;
    },
    async reasoning(text) {
      texts.reasoning_content += text;
    },
    async call(index, piece, started) {
      const call = (calls[index] ??= {
        id: started?.id,
        type: "function",
        function: { name: started?.name ?? "", arguments: "" },
      });
      call.function.arguments += piece;
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
