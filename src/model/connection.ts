import { randomUUID } from "node:crypto";
import { memoizePer } from "../base/memoize.ts";
import type { StreamWatch } from "./answer/chunk-merger.ts";
import { answerToEvents, normalizeEvents } from "./answer/event-stream.ts";
import { parseErrorAnswer, invalidResponse, isWebPage, ProviderFailure, titleOf } from "./failure.ts";
import type { HttpAnswer, HttpRequest, Send } from "./http.ts";
import type { RequestMessages } from "./request/request-messages.ts";
import { parseRefusedCall } from "./answer/refused-call.ts";
import type { SerializedPrefixCache } from "./request/serialized-prefix-cache.ts";

/** Maximum number of redirects on the same origin. */
const redirectLimit = 3;

/** Maximum size of an error body, in bytes. */
const errorBodyLimitBytes = 64 * 1024;
/** Timeout to read an error body. */
const errorBodyLimitMs = 2_000;

/** Maximum size of an answer that is not streamed, in bytes. */
const answerLimitBytes = 64 * 1024 * 1024;

type Fetch = typeof globalThis.fetch;

/** State of a call that does not pass through the SDK. */
interface Call {
  readonly watch: StreamWatch;
  /** Serialized messages of the conversation. */
  readonly sent: SerializedPrefixCache;
  readonly outgoing: RequestMessages;
  /** The tool set that is passed to the SDK. */
  readonly tools: object | undefined;
}

/** Parts of a request that bypass the SDK's serialization. */
interface OmittedBody {
  readonly messages: readonly unknown[];
  readonly tools: unknown;
}

type Adapt = (messages: readonly unknown[]) => readonly unknown[];

/**
 * The HTTP connection to one provider.
 *
 * - `fetch` follows redirects on the same origin only, so that keys are not sent elsewhere.
 * - `fetch` resolves with a normalized event stream, or rejects with a {@link ProviderFailure}.
 * - The SDK converts only new messages ({@link RequestMessages}); messages and tools bypass its serialization
 *   ({@link SerializedPrefixCache}).
 */
export class ModelConnection {
  readonly #send: Send;
  /** Adapts the messages of a request to the provider. */
  readonly #adapt: Adapt;
  readonly #calls = new WeakMap<AbortSignal, Call>();
  /** Omitted parts by the placeholder in the body. */
  readonly #omitted = new Map<string, OmittedBody>();
  readonly #cachedTools = memoizePer<Uint8Array>();
  /** Number of calls that are not sent yet. */
  #opening = 0;

  constructor(send: Send, adapt: Adapt) {
    this.#send = send;
    this.#adapt = adapt;
  }

  /** Makes the call with this signal. If the SDK does not send it, for example for an invalid header, its state is dropped. */
  async open<T>(signal: AbortSignal, call: Call, make: () => PromiseLike<T>): Promise<T> {
    this.#calls.set(signal, call);
    this.#opening++;
    try {
      return await make();
    } finally {
      if (--this.#opening === 0) this.#omitted.clear();
    }
  }

  /** Replaces messages and tools by placeholders in the body that the SDK serializes. */
  omitBody(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const { messages, tools } = body;
    if (!Array.isArray(messages)) return { ...body };
    const placeholder = randomUUID();
    this.#omitted.set(placeholder, { messages, tools });
    return {
      ...body,
      messages: placeholder,
      ...(tools !== undefined && { tools: toolsPlaceholder(placeholder) }),
    };
  }

  readonly fetch: Fetch = async (input, init) => {
    const { body, signal } = init ?? {};
    const call = signal ? this.#calls.get(signal) : undefined;
    if (typeof input !== "string" || typeof body !== "string" || !signal || call === undefined)
      throw new Error("unexpected request format of the SDK");
    const { watch } = call;
    const pieces = this.#buildBody(body, call);
    const request = { method: "POST", headers: copyHeaders(init), body: pieces, signal } as const;
    const answer = await followRedirects(this.#send, new URL(input), request);
    if (answer.status < 200 || answer.status >= 300) {
      const text = await readErrorBody(answer, signal);
      const error = parseErrorAnswer({ ...answer, body: text, now: Date.now() });
      throw new ProviderFailure(error, parseRefusedCall(text));
    }
    const isJson = /json/i.test(answer.header("content-type") ?? "");
    const opened = isJson ? await detectEvents(answer) : { answer, isEvents: !isWebPage(answer, "") };
    return asResponse(
      opened.isEvents
        ? normalizeEvents(opened.answer, watch)
        : await convertWholeAnswer(opened.answer, watch),
    );
  };

  #buildBody(body: string, call: Call): Uint8Array[] {
    for (const [placeholder, omitted] of this.#omitted) {
      if (!body.includes(`"${placeholder}"`)) continue;
      this.#omitted.delete(placeholder);
      return this.#joinBody(body, placeholder, omitted, call);
    }
    throw new Error("unexpected request format of the SDK");
  }

  #joinBody(body: string, placeholder: string, { messages, tools }: OmittedBody, call: Call): Uint8Array[] {
    const pieces: Uint8Array[] = [];
    let text = "";
    for (const part of body.split(new RegExp(`("(?:${toolsPlaceholder("")})?${placeholder}")`))) {
      if (part === `"${placeholder}"`) {
        pieces.push(Buffer.from(`${text}[`), call.sent.encode(this.#adapt(call.outgoing.join(messages))));
        text = "]";
      } else if (part === `"${toolsPlaceholder(placeholder)}"`) {
        pieces.push(Buffer.from(text), this.#encodeTools(tools, call));
        text = "";
      } else text += part;
    }
    return [...pieces, Buffer.from(text)];
  }

  /** Serializes the tools once per tool set: they are most of a first request. */
  #encodeTools(tools: unknown, call: Call): Uint8Array {
    return this.#cachedTools(call.tools ?? call, [], () => Buffer.from(JSON.stringify(tools)));
  }
}

/** Returns the placeholder for tools. */
const toolsPlaceholder = (placeholder: string): string => `tools ${placeholder}`;

/** Reads an error body. Returns "" if it breaks off or times out, so that the status is still reported. */
async function readErrorBody(answer: HttpAnswer, signal: AbortSignal): Promise<string> {
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

/** Redirects that repeat a POST; after the others it would become a GET without a body. */
const keepsMethod = new Set([307, 308]);
const redirects = new Set([301, 302, 303, ...keepsMethod]);

/**
 * Sends a request and follows redirects on the same origin. Throws on redirects to another origin, which must not receive
 * the key, and on redirects that would drop the body (RFC 9110, 15.4).
 */
export async function followRedirects(send: Send, url: URL, request: HttpRequest): Promise<HttpAnswer> {
  let at = url;
  for (let followed = 0; followed <= redirectLimit; followed++) {
    const answer = await send(at, request);
    const location = answer.header("location");
    if (!redirects.has(answer.status) || location === null) return answer;
    answer.cut();
    const next = URL.canParse(location, at.href) ? new URL(location, at.href) : undefined;
    if (next?.origin !== url.origin)
      throw new ProviderFailure(crossOriginRedirect(url, location, answer.status));
    if (request.method === "POST" && !keepsMethod.has(answer.status))
      throw new ProviderFailure(bodyLostOnRedirect(at, next, answer.status));
    at = next;
  }
  throw new ProviderFailure(
    invalidResponse(`${url.host} redirects in circles. Is the base URL right?`, false),
  );
}

const crossOriginRedirect = (from: URL, to: string, status: number) => ({
  code: "bad-request" as const,
  message: `${from.host} redirects to ${to.slice(0, 200)}. The key is not sent to another host; if that one is right, set it as base URL.`,
  status,
  retryable: false,
});

const bodyLostOnRedirect = (from: URL, to: URL, status: number) => ({
  code: "bad-request" as const,
  message: `${omitQuery(from)} answers ${status} and leads to ${omitQuery(to)}, which would not receive the request. Is the base URL right? If that address is, set it as base URL, without /chat/completions.`,
  status,
  retryable: false,
});

/** Returns the address without query and credentials, which may contain a key. */
const omitQuery = ({ origin, pathname }: URL): string => (origin + pathname).slice(0, 200);

/** Matches the first field or comment of an event stream. No JSON object or list begins like this. */
const eventsStart = /^\s*[deir:]/;

/** Peeks at the body to detect an event stream despite its content type. The returned answer has the whole body. */
async function detectEvents(answer: HttpAnswer): Promise<{ answer: HttpAnswer; isEvents: boolean }> {
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
  return { answer: { ...answer, body: Readable.from(body()) }, isEvents: eventsStart.test(text) };
}

async function convertWholeAnswer(
  answer: HttpAnswer,
  watch: StreamWatch,
): Promise<ReadableStream<Uint8Array>> {
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

/** Creates an object with the members of `Response` that the SDK reads. Node's class would load its whole fetch. */
function asResponse(body: ReadableStream<Uint8Array>): Response {
  const headers = new Map([["content-type", "text/event-stream"]]);
  return Object.assign(Object.create(null), { ok: true, status: 200, headers, body });
}

/** Returns the headers; the SDK passes a plain object. */
function copyHeaders(init: RequestInit | undefined): Record<string, string> {
  const { headers = {} } = init ?? {};
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

/** Reads a body up to the limit and ignores the rest. */
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
