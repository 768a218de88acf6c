import { apis, type Api } from "../../config/api.ts";
import { isWebPage, parseErrorAnswer, redact, toAgentError } from "../failure.ts";
import { sendJson } from "./list-models.ts";
import type { Provider } from "./usable-providers.ts";

/** Maximum time of a check. */
const limitMs = 2_000;

/** The path of each API below the base URL. */
export const apiPaths: Readonly<Record<Api, string>> = {
  chat: "/chat/completions",
  responses: "/responses",
  messages: "/messages",
};

/** Whether a server has an API. */
export type ApiCheck =
  | { outcome: "answers" }
  /** The server has no such path; `others` are the APIs that it has. */
  | { outcome: "missing"; others: readonly Api[] }
  | { outcome: "failed"; message: string };

/**
 * Checks with an empty request, which costs nothing, whether a server has an API; if not, which others it has. Never
 * rejects.
 */
export async function checkApi(provider: Provider, api: Api): Promise<ApiCheck> {
  const checked = await probe(provider, api);
  if (checked.outcome !== "missing") return checked;
  const candidates = apis.filter((other) => other !== api);
  const probed = await Promise.all(candidates.map((other) => probe(provider, other)));
  return {
    outcome: "missing",
    others: candidates.filter((_, index) => probed[index]?.outcome === "answers"),
  };
}

type Probed = { outcome: "answers" } | { outcome: "missing" } | { outcome: "failed"; message: string };

async function probe(provider: Provider, api: Api): Promise<Probed> {
  const { id, baseURL, apiKey } = provider;
  const url = `${baseURL.replace(/\/+$/, "")}${apiPaths[api]}`;
  const signal = AbortSignal.timeout(limitMs);
  try {
    const { answer, text } = await sendJson(url, provider, signal, {});
    if (isMissing(answer.status, text) || isWebPage(answer, text)) return { outcome: "missing" };
    if (!failures.has(answer.status)) return { outcome: "answers" };
    const error = parseErrorAnswer({ ...answer, body: text, now: Date.now() });
    return { outcome: "failed", message: redact(error.message, [apiKey ?? ""].filter(Boolean)) };
  } catch (thrown) {
    if (signal.aborted)
      return { outcome: "failed", message: `${apiPaths[api]} did not answer within ${limitMs / 1_000} s.` };
    const { message } = toAgentError(thrown, { provider: id, baseURL });
    return { outcome: "failed", message: redact(message, [apiKey ?? ""].filter(Boolean)) };
  }
}

/** Answers that say nothing about the request: refused keys and servers that are down. */
const failures = new Set([401, 403, 502, 503, 504]);

/** A 404 about the model comes from an existing path. LM Studio answers 200 for unknown paths. */
function isMissing(status: number, text: string): boolean {
  if (status === 405 || status === 501) return true;
  if (status === 404) return !/model/i.test(text);
  return /unexpected endpoint/i.test(text);
}
