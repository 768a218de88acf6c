import type { FetchLike } from "@modelcontextprotocol/client";
import { codeOf, messageOf, UserError } from "../../base/errors.ts";

/** Maximum bytes of an authorization server's answer. Metadata and tokens are far smaller. */
const answerLimitBytes = 1024 * 1024;

export interface OAuthRequestOptions {
  /** Timeout of a request including its answer, in milliseconds. */
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}

/** Creates a fetch with a timeout and a size limit. Rejects with messages for the user. */
export function createOAuthFetch(base: FetchLike, { timeoutMs, signal }: OAuthRequestOptions): FetchLike {
  return async (url, init) => {
    const timeout = AbortSignal.timeout(timeoutMs);
    const signals = [timeout, signal, init?.signal].filter((one) => one !== undefined && one !== null);
    try {
      const response = await base(url, { ...init, signal: AbortSignal.any(signals) });
      return await withBoundedBody(response);
    } catch (thrown) {
      signal?.throwIfAborted();
      if (thrown instanceof UserError) throw thrown;
      throw new UserError(`${hostOf(url)} ${timeout.aborted ? silence(timeoutMs) : getReason(thrown)}`, {
        cause: thrown,
      });
    }
  };
}

/** Creates a fetch that sends the configured headers to the server's own origin only. */
export function createServerFetch(
  base: FetchLike,
  server: { url: string; headers?: Readonly<Record<string, string>> | undefined },
): FetchLike {
  const own = Object.entries(server.headers ?? {});
  return (url, init) => {
    if (own.length === 0 || !isSameOrigin(server.url, url)) return base(url, init);
    const headers = new Headers(init?.headers);
    for (const [name, value] of own) headers.set(name, value);
    return base(url, { ...init, headers });
  };
}

export function isSameOrigin(one: string | URL, other: string | URL): boolean {
  return new URL(one).origin === new URL(other).origin;
}

/**
 * Validates a URL that a server named for its authorization. Throws if it is not a web address, or plain http for a server
 * with https.
 */
export function checkEndpoint(serverUrl: string, endpoint: string): URL {
  const url = URL.parse(endpoint);
  const isWeb = url?.protocol === "https:" || url?.protocol === "http:";
  if (url === null || !isWeb)
    throw new UserError(
      `${hostOf(serverUrl)} names ${endpoint.slice(0, 200)} for its authorization, which is not a web address.`,
    );
  if (url.protocol === "http:" && new URL(serverUrl).protocol === "https:")
    throw new UserError(
      `${hostOf(serverUrl)} names ${url.origin} for its authorization, which is not encrypted. Nothing was sent there.`,
    );
  return url;
}

export function hostOf(url: string | URL): string {
  return URL.parse(String(url))?.host ?? String(url);
}

async function withBoundedBody(response: Response): Promise<Response> {
  const { status, statusText, headers } = response;
  if (response.body === null) return response;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.byteLength;
    if (bytes > answerLimitBytes)
      throw new UserError(`${hostOf(response.url)} answered with more than ${answerLimitBytes} bytes.`);
    chunks.push(chunk);
  }
  return new Response(Buffer.concat(chunks), { status, statusText, headers });
}

function silence(timeoutMs: number): string {
  return `did not answer within ${timeoutMs / 1000} s. Try again, or give the server a longer "timeout".`;
}

/** Returns the message of the cause: Node's own is "fetch failed". */
function getReason(thrown: unknown): string {
  const cause = thrown instanceof Error ? thrown.cause : undefined;
  return `could not be reached: ${codeOf(cause) ?? messageOf(cause ?? thrown)}.`;
}
