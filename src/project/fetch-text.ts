import { orAfter } from "../base/async.ts";
import { UserError } from "../base/errors.ts";

const fetchTimeoutS = 5;

/** Fetches the text of a URL from the configuration. Throws {@link UserError} after {@link fetchTimeoutS} seconds. */
export async function fetchText(url: string): Promise<string> {
  const { fetchText } = await import("../tool/web/page-fetch.ts");
  const { systemLookup } = await import("../tool/web/web-request.ts");
  const { signal } = new AbortController();
  const fetched = fetchText(url, { lookup: systemLookup, timeoutS: fetchTimeoutS, signal });
  // The fetch's timeout does not cover the DNS lookup.
  const text = await orAfter(fetched, fetchTimeoutS * 1000, undefined);
  if (text === undefined) throw new UserError(`it did not answer within ${fetchTimeoutS} seconds`);
  return text;
}
