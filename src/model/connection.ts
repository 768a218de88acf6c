import { randomUUID } from "node:crypto";
import { memoizePer } from "../base/memoize.ts";
import type { StreamWatch } from "./answer/chunk-merger.ts";
import { answerToEvents, normalizeEvents } from "./answer/event-stream.ts";
import { fromAnswer, invalidResponse, isWebPage, ProviderFailure, titleOf } from "./failure.ts";
import type { HttpAnswer, HttpRequest, Send } from "./http.ts";
import type { RequestMessages } from "./request/request-messages.ts";
import { parseRefusedCall } from "./answer/refused-call.ts";
import type { SerializedPrefixCache } from "./request/serialized-prefix-cache.ts";

/** How often a provider may send a request elsewhere on its own host. */
const redirectLimit = 3;

/** How much of an error's body is read, in bytes. */
const errorBodyLimitBytes = 64 * 1024;
/** How long it may take to come. */
const errorBodyLimitMs = 2_000;

/** How much of an answer that does not stream is read, in bytes. */
const answerLimitBytes = 64 * 1024 * 1024;

type Fetch = typeof globalThis.fetch;

/** What belongs to a call beside what goes through the SDK. */
interface Call {
  readonly watch: StreamWatch;
  /** The conversation that it is a part of. */
  readonly sent: SerializedPrefixCache;
  readonly outgoing: RequestMessages;
  /** What the SDK writes the request's tools from. */
  readonly tools: object | undefined;
}

/** What goes around the SDK's making of texts. */
interface OmittedBody {
  readonly messages: readonly unknown[];
  readonly tools: unknown;
}

type Adapt = (messages: readonly unknown[]) => readonly unknown[];

/**
 * The way to one provider. Its fetch follows redirects on the same origin only, so that keys go nowhere else, and
 * hands on nothing but a tidy event stream; all else rejects with a {@link ProviderFailure}. The SDK writes those messages
 * of a request that it has not written before ({@link RequestMessages}), and they go around its making of texts
 * ({@link SerializedPrefixCache}), as its tools do.
 */
export class Connection {
  readonly #send: Send;
  /** Makes the messages of a request what the provider takes. */
  readonly #adapt: Adapt;
  readonly #calls = new WeakMap<AbortSignal, Call>();
  /** By the word that stands in their place. */
  readonly #withheld = new Map<string, OmittedBody>();
  readonly #keptTools = memoizePer<Uint8Array>();
  /** Calls of which it is not known yet whether they are sent. */
  #opening = 0;

  constructor(send: Send, adapt: Adapt) {
    this.#send = send;
    this.#adapt = adapt;
  }

  /** Makes the call with this signal. Of one that the SDK refuses to send, such as for a header, nothing is kept. */
  async open<T>(signal: AbortSignal, call: Call, make: () => PromiseLike<T>): Promise<T> {
    this.#calls.set(signal, call);
    this.#opening++;
    try {
      return await make();
    } finally {
      if (--this.#opening === 0) this.#withheld.clear();
    }
  }

  /** The body for the SDK to make a text of, without its messages and tools. */
  withhold(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const { messages, tools } = body;
    if (!Array.isArray(messages)) return { ...body };
    const word = randomUUID();
    this.#withheld.set(word, { messages, tools });
    return { ...body, messages: word, ...(tools !== undefined && { tools: toolsOf(word) }) };
  }

  readonly fetch: Fetch = async (input, init) => {
    const { body, signal } = init ?? {};
    const call = signal ? this.#calls.get(signal) : undefined;
    if (typeof input !== "string" || typeof body !== "string" || !signal || call === undefined)
      throw new Error("the SDK asks in another way than it did");
    const { watch } = call;
    const pieces = this.#piecesFor(body, call);
    const request = { method: "POST", headers: headersIn(init), body: pieces, signal } as const;
    const answer = await followRedirects(this.#send, new URL(input), request);
    if (answer.status < 200 || answer.status >= 300) {
      const words = await readRefusal(answer, signal);
      const error = fromAnswer({ ...answer, body: words, now: Date.now() });
      throw new ProviderFailure(error, parseRefusedCall(words));
    }
    const isJson = /json/i.test(answer.header("content-type") ?? "");
    const opened = isJson ? await beginningOf(answer) : { answer, isEvents: !isWebPage(answer, "") };
    return asResponse(
      opened.isEvents ? normalizeEvents(opened.answer, watch) : await wholeAnswer(opened.answer, watch),
    );
  };

  #piecesFor(body: string, call: Call): Uint8Array[] {
    for (const [word, withheld] of this.#withheld) {
      if (!body.includes(`"${word}"`)) continue;
      this.#withheld.delete(word);
      return this.#piecesOf(body, word, withheld, call);
    }
    throw new Error("the SDK asks in another way than it did");
  }

  #piecesOf(body: string, word: string, { messages, tools }: OmittedBody, call: Call): Uint8Array[] {
    const pieces: Uint8Array[] = [];
    let text = "";
    for (const part of body.split(new RegExp(`("(?:${toolsOf("")})?${word}")`))) {
      if (part === `"${word}"`) {
        pieces.push(Buffer.from(`${text}[`), call.sent.encode(this.#adapt(call.outgoing.join(messages))));
        text = "]";
      } else if (part === `"${toolsOf(word)}"`) {
        pieces.push(Buffer.from(text), this.#encodeTools(tools, call));
        text = "";
      } else text += part;
    }
    return [...pieces, Buffer.from(text)];
  }

  /** The same tools are written alike: most of a first request, and of each step. */
  #encodeTools(tools: unknown, call: Call): Uint8Array {
    return this.#keptTools(call.tools ?? call, [], () => Buffer.from(JSON.stringify(tools)));
  }
}

/** Stands for tools. */
const toolsOf = (word: string): string => `tools ${word}`;

/** An error's body, as far as it comes: that it breaks off or does not end hides no status. */
async function readRefusal(answer: HttpAnswer, signal: AbortSignal): Promise<string> {
  const timer = setTimeout(() => answer.cut(), errorBodyLimitMs);
  try {
    return await readText(answer, errorBodyLimitBytes);
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    return "";
  } finally {
    clearTimeout(timer);
  }
}

/** Those that say where the same is to be asked again; after the others a POST would be a GET without its content. */
const keepsMethod = new Set([307, 308]);
const redirects = new Set([301, 302, 303, ...keepsMethod]);

/**
 * The answer at the end of redirects on the same origin; throws where they lead elsewhere, so that keys go nowhere
 * else, and where what is posted could not be sent along (RFC 9110, 15.4).
 */
export async function followRedirects(send: Send, url: URL, request: HttpRequest): Promise<HttpAnswer> {
  let at = url;
  for (let followed = 0; followed <= redirectLimit; followed++) {
    const answer = await send(at, request);
    const location = answer.header("location");
    if (!redirects.has(answer.status) || location === null) return answer;
    answer.cut();
    const next = URL.canParse(location, at.href) ? new URL(location, at.href) : undefined;
    if (next?.origin !== url.origin) throw new ProviderFailure(redirected(url, location, answer.status));
    if (request.method === "POST" && !keepsMethod.has(answer.status))
      throw new ProviderFailure(notTaken(at, next, answer.status));
    at = next;
  }
  throw new ProviderFailure(
    invalidResponse(`${url.host} redirects in circles. Is the base URL right?`, false),
  );
}

const redirected = (from: URL, to: string, status: number) => ({
  code: "bad-request" as const,
  message: `${from.host} redirects to ${to.slice(0, 200)}. The key is not sent to another host; if that one is right, set it as base URL.`,
  status,
  retryable: false,
});

const notTaken = (from: URL, to: URL, status: number) => ({
  code: "bad-request" as const,
  message: `${addressOf(from)} answers ${status} and leads to ${addressOf(to)}, which would not get what is asked along. Is the base URL right? If that address is, set it as base URL, without /chat/completions.`,
  status,
  retryable: false,
});

/** Without what may be a key in it. */
const addressOf = ({ origin, pathname }: URL): string => (origin + pathname).slice(0, 200);

/** How the field or the comment begins that is the first of an event stream; no JSON begins like this. */
const eventsBegin = /^\s*[deir:]/;

/** The answer with all of its bytes, and whether they are events, whatever they are called. */
async function beginningOf(answer: HttpAnswer): Promise<{ answer: HttpAnswer; isEvents: boolean }> {
  const rest: AsyncIterator<Uint8Array> = answer.body[Symbol.asyncIterator]();
  const decoder = new TextDecoder();
  const read: Uint8Array[] = [];
  let bytes = 0;
  let text = "";
  while (text.trim() === "" && bytes < answerLimitBytes) {
    const { done = false, value } = await rest.next();
    if (done) break;
    read.push(value);
    bytes += value.length;
    text = decoder.decode(value, { stream: true });
  }
  const body = async function* () {
    yield* read;
    yield* { [Symbol.asyncIterator]: () => rest };
  };
  const { Readable } = await import("node:stream");
  return { answer: { ...answer, body: Readable.from(body()) }, isEvents: eventsBegin.test(text) };
}

async function wholeAnswer(answer: HttpAnswer, watch: StreamWatch): Promise<ReadableStream<Uint8Array>> {
  const text = await readText(answer, answerLimitBytes);
  if (isWebPage(answer, text)) {
    const message = `The provider answered with a web page${titleOf(text)}, not with a model's answer. Is the base URL right?`;
    throw new ProviderFailure(invalidResponse(message, false));
  }
  const events = new TextEncoder().encode(answerToEvents(text, watch));
  return new ReadableStream({
    start: (controller) => {
      controller.enqueue(events);
      controller.close();
    },
  });
}

/** What the SDK reads of a response: Node's own class would load all of its fetch. */
function asResponse(body: ReadableStream<Uint8Array>): Response {
  const headers = new Map([["content-type", "text/event-stream"]]);
  return Object.assign(Object.create(null), { ok: true, status: 200, headers, body });
}

/** The SDK hands headers over as a plain object. */
function headersIn(init: RequestInit | undefined): Record<string, string> {
  const { headers = {} } = init ?? {};
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

/** At most the limit of a body; what is beyond is not read. */
export async function readText(answer: HttpAnswer, limitBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let read = 0;
  for await (const chunk of answer.body) {
    text += decoder.decode(chunk.subarray(0, limitBytes - read), { stream: true });
    read += chunk.length;
    if (read >= limitBytes) return text;
  }
  return text + decoder.decode();
}
