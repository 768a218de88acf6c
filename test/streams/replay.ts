import { Readable } from "node:stream";
import { silentLog } from "../../src/base/log.ts";
import type { Api } from "../../src/config/api.ts";
import { newMessageId, newPartId, newSessionId } from "../../src/message/ids.ts";
import type { Message } from "../../src/message/message.ts";
import { describeModel } from "../../src/model/catalog/catalog.ts";
import { Wires } from "../../src/model/wires/wires.ts";
import { type Send, sendHttp } from "../../src/model/http.ts";
import type { StepEnd, StepEvent } from "../../src/model/model.ts";
import { callModel } from "../../src/model/call/call-model.ts";
import { listen, type Listening } from "../support/listen.ts";

/** Splits bytes into the chunks in which they are read. */
export type Cut = (bytes: Uint8Array) => Iterable<Uint8Array>;

export const cuts: Readonly<Record<string, Cut>> = {
  "in one piece": (bytes) => [bytes],
  "byte by byte": (bytes) => pieces(bytes, 1),
  "seven bytes each": (bytes) => pieces(bytes, 7),
  "inside of characters": insideCharacters,
};

function* pieces(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** Before the last byte of each multi-byte character. */
function* insideCharacters(bytes: Uint8Array): Generator<Uint8Array> {
  let start = 0;
  for (let at = 1; at < bytes.length; at++) {
    const isContinued = ((bytes[at] ?? 0) & 0xc0) === 0x80;
    const isLast = ((bytes[at + 1] ?? 0) & 0xc0) !== 0x80;
    if (!isContinued || !isLast) continue;
    yield bytes.subarray(start, at);
    start = at;
  }
  yield bytes.subarray(start);
}

/** The outcome of a model call. */
export interface Replayed {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly (StepEvent & { type: "call" })[];
  readonly end: StepEnd;
}

const sessionId = newSessionId();
const question: Message = {
  info: { id: newMessageId(), sessionId, role: "user", time: { created: 1 }, agent: "build" },
  parts: [{ id: newPartId(), type: "text", text: "Look at the files." }],
};
const model = describeModel({ provider: "test", model: "m" }, undefined);

/** Calls a server like the program. */
export async function ask(
  baseURL: string,
  {
    api = "chat",
    wires = new Wires(sendHttp),
    stallMs = 10_000,
  }: { api?: Api; wires?: Wires; stallMs?: number } = {},
): Promise<Replayed> {
  const endpoint = { provider: "test", baseURL, api, headers: {}, modelId: "m", options: {}, stallMs };
  const request = {
    model: { ...model, api },
    system: [],
    messages: [question],
    tools: [],
    signal: new AbortController().signal,
  };
  const events: StepEvent[] = [];
  const end = await callModel(request, endpoint, { wires, log: silentLog }, (event) => {
    events.push(event);
    return undefined;
  });
  return {
    text: textIn(events, "text-delta"),
    reasoning: textIn(events, "reasoning-delta"),
    calls: events.filter((event) => event.type === "call"),
    end,
  };
}

/** A server that streams what a test defines, called by the program's own code. */
export class Replay implements AsyncDisposable {
  readonly #server: Listening;
  readonly #answer: { bytes: Uint8Array };
  readonly #wires: Wires;
  #cut: Cut = (bytes) => [bytes];

  private constructor(server: Listening, answer: { bytes: Uint8Array }) {
    this.#server = server;
    this.#answer = answer;
    this.#wires = new Wires(this.#send);
  }

  static async start(): Promise<Replay> {
    const answer = { bytes: new Uint8Array() };
    const server = await listen((request, response) => {
      request.resume().once("end", () => {
        response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" }).end(answer.bytes);
      });
    });
    return new Replay(server, answer);
  }

  play(api: Api, stream: string, cut: Cut): Promise<Replayed> {
    this.#answer.bytes = Buffer.from(stream);
    this.#cut = cut;
    return ask(this.#server.url, { api, wires: this.#wires });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }

  /** Delivers an answer in other chunks than those that the system happens to read. */
  readonly #send: Send = async (url, request) => {
    const answer = await sendHttp(url, request);
    const whole = Buffer.concat(await answer.body.toArray());
    const body = new Readable({ read() {} });
    // Like a connection: delivers nothing before the next request for data.
    setImmediate(() => {
      for (const piece of this.#cut(whole)) body.push(piece);
      body.push(null);
    });
    return { ...answer, body };
  };
}

const textIn = (events: readonly StepEvent[], type: "text-delta" | "reasoning-delta"): string =>
  events.map((event) => (event.type === type ? event.text : "")).join("");
