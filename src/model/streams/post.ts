import { toWellFormedJson } from "../../base/text/json.ts";
import { parseRefusedCall } from "../answer/refused-call.ts";
import { parseErrorAnswer, ProviderFailure } from "../failure.ts";
import type { HttpAnswer, Send } from "../http.ts";
import { followRedirects, readText } from "../redirects.ts";

/** Maximum size of an error body, in bytes. */
const errorBodyLimitBytes = 64 * 1024;
/** Timeout to read an error body. */
const errorBodyLimitMs = 2_000;

/**
 * Posts JSON. Redirects are followed on the same origin only, so that keys are not sent elsewhere. Rejects with a
 * {@link ProviderFailure} if the provider refuses.
 */
export async function post(
  send: Send,
  url: URL,
  { headers, body, signal }: { headers: Record<string, string>; body: string; signal: AbortSignal },
): Promise<HttpAnswer> {
  const content = [Buffer.from(toWellFormedJson(body))];
  const answer = await followRedirects(send, url, { method: "POST", headers, body: content, signal });
  if (answer.status < 200 || answer.status >= 300) throw await toFailure(answer, signal);
  return answer;
}

async function toFailure(answer: HttpAnswer, signal: AbortSignal): Promise<ProviderFailure> {
  const body = await readErrorBody(answer, signal);
  return new ProviderFailure(parseErrorAnswer({ ...answer, body, now: Date.now() }), parseRefusedCall(body));
}

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
