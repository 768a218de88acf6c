import { eventsOfAnswer, type StreamWatch, tidyEvents } from "./event-stream.ts";
import { fromAnswer, invalidResponse, isWebPage, ProviderFailure, titleOf } from "./failure.ts";

/** How often a provider may send a request elsewhere on its own host. */
const redirectLimit = 3;

/** How much of an error's body is read, in bytes. */
const errorBodyLimitBytes = 64 * 1024;

/** How much of an answer that does not stream is read, in bytes. */
const answerLimitBytes = 64 * 1024 * 1024;

type Fetch = typeof globalThis.fetch;

const nobody: StreamWatch = { onFailure: () => undefined, onSignature: () => undefined };

/**
 * The way to one provider. Its fetch follows redirects on the same origin only, so that keys go nowhere else, and
 * hands on nothing but a tidy event stream; all else rejects with a {@link ProviderFailure}.
 */
export class Connection {
  readonly #fetch: Fetch;
  readonly #watches = new WeakMap<AbortSignal, StreamWatch>();

  constructor(fetch: Fetch) {
    this.#fetch = fetch;
  }

  /** Tells of the stream of the call with this signal what the SDK does not. */
  watch(signal: AbortSignal, watch: StreamWatch): void {
    this.#watches.set(signal, watch);
  }

  readonly fetch: Fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const response = await followRedirects(this.#fetch, url, init);
    if (!response.ok) {
      const body = await readText(response, errorBodyLimitBytes);
      throw new ProviderFailure(
        fromAnswer({ status: response.status, headers: response.headers, body, now: Date.now() }),
      );
    }
    const watch = (init?.signal && this.#watches.get(init.signal)) ?? nobody;
    const type = response.headers.get("content-type") ?? "";
    if (/json/i.test(type) || isWebPage(response.headers, "")) return wholeAnswer(response, watch);
    if (response.body === null) {
      throw new ProviderFailure(invalidResponse("The provider answered with nothing.", true));
    }
    return eventResponse(tidyEvents(response.body, watch));
  };
}

/** The answer at the end of redirects on the same origin; throws where they lead elsewhere, so that keys go nowhere else. */
export async function followRedirects(
  fetch: Fetch,
  url: URL,
  init: RequestInit | undefined,
): Promise<Response> {
  let at = url;
  for (let redirects = 0; redirects <= redirectLimit; redirects++) {
    const response = await fetch(at.href, { ...init, redirect: "manual" });
    const location = response.headers.get("location");
    if (response.status < 300 || response.status >= 400 || location === null) return response;
    await response.body?.cancel();
    const next = URL.canParse(location, at.href) ? new URL(location, at.href) : undefined;
    if (next?.origin !== url.origin) throw new ProviderFailure(redirected(url, location, response.status));
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

async function wholeAnswer(response: Response, watch: StreamWatch): Promise<Response> {
  const text = await readText(response, answerLimitBytes);
  if (isWebPage(response.headers, text)) {
    const message = `The provider answered with a web page${titleOf(text)}, not with a model's answer. Is the base URL right?`;
    throw new ProviderFailure(invalidResponse(message, false));
  }
  return eventResponse(eventsOfAnswer(text, watch));
}

const eventResponse = (body: string | ReadableStream<Uint8Array>): Response =>
  new Response(body, { headers: { "content-type": "text/event-stream" } });

/** At most the limit of a body; what is beyond is not read. */
export async function readText(response: Response, limitBytes: number): Promise<string> {
  if (response.body === null) return "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let read = 0; read < limitBytes;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value.subarray(0, limitBytes - read), { stream: true });
    read += value.length;
  }
  await reader.cancel();
  return text;
}
