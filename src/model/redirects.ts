import { invalidResponse, ProviderFailure } from "./failure.ts";
import type { HttpAnswer, HttpRequest, Send } from "./http.ts";

/** Maximum number of redirects on the same origin. */
const redirectLimit = 3;

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
