import { orAfter } from "../base/async.ts";
import { UserError } from "../base/errors.ts";

/** How long instructions may take to arrive, in seconds (system.md 9). */
const fetchLimitS = 5;

/** The text at a URL that a configuration names. Tools are loaded for it. Throws {@link UserError} after 5 seconds. */
export async function fetchText(url: string): Promise<string> {
  const { fetchText } = await import("../tool/web/page-fetch.ts");
  const { systemLookup } = await import("../tool/web/web-request.ts");
  const { signal } = new AbortController();
  const fetched = fetchText(url, { lookup: systemLookup, timeoutS: fetchLimitS, signal });
  // The look-up of the name has a limit of its own.
  const text = await orAfter(fetched, fetchLimitS * 1000, undefined);
  if (text === undefined) throw new UserError(`it did not answer within ${fetchLimitS} seconds`);
  return text;
}
