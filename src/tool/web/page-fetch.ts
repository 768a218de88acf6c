import { titleLimit, titleOfObject } from "../../base/text/call-titles.ts";
import { excerpt } from "../../base/text/excerpt.ts";
import type { PermissionRequest } from "../../permission/rule.ts";
import { fitMedium } from "../image/media.ts";
import { ToolFailure } from "../tool.ts";
import type { PreparedCall, ToolResult } from "../tool.ts";
import { isPublicAddress } from "./web-address.ts";
import type { PageContent, PageFormat } from "./web-page.ts";
import { resolveAddresses, sendRequest, systemLookup } from "./web-request.ts";
import type { Lookup, WebResponse } from "./web-request.ts";

const redirectLimit = 10;
/** Characters of an address that its title shows whole. */
const shownAddress = titleLimit - "Fetch ".length;
/** Characters of an error page for the model. */
const errorExcerpt = 1_000;

interface PageRequest {
  readonly address: string;
  readonly format: PageFormat;
  readonly timeoutS: number;
  readonly lookup?: Lookup | undefined;
}

/** Prepares a fetch and its permissions. */
export async function prepareFetch(wanted: PageRequest): Promise<PreparedCall> {
  const { address, format, timeoutS, lookup = systemLookup } = wanted;
  const url = parseUrl(address);
  const inner = (await resolveAddresses(url, lookup)).filter((found) => !isPublicAddress(found));
  const agreed = { origin: url.origin, addresses: inner };
  return {
    title: titleOfObject("Fetch", url.href),
    ...(url.href.length > shownAddress && { preview: { text: url.href } }),
    locations: [],
    permissions: [createPermission(url, inner)],
    run: async ({ signal }) =>
      renderResult(await runFetch({ url, format, timeoutS, agreed, lookup }, signal), signal),
  };
}

/**
 * Fetches the text of a page whose address the user configured. That is consent to this address, even on a local
 * network, but not to redirect targets. HTML is converted to Markdown. Throws {@link ToolFailure} if there is no text.
 */
export async function fetchText(
  address: string,
  { lookup, timeoutS, signal }: { lookup: Lookup; timeoutS: number; signal: AbortSignal },
): Promise<string> {
  const url = parseUrl(address);
  const agreed = { origin: url.origin, addresses: await resolveAddresses(url, lookup) };
  const fetched = await runFetch({ url, format: "markdown", timeoutS, agreed, lookup }, signal);
  if (fetched.end === "elsewhere") throw new ToolFailure(`it redirects to ${fetched.to.href}, another site`);
  const { status, content } = fetched;
  if (!isGood(status)) throw new ToolFailure(`it answered with status ${status}`);
  if (content.kind !== "text") throw new ToolFailure(`it is not text but ${content.mime}`);
  return content.text;
}

interface Fetch {
  readonly url: URL;
  readonly format: PageFormat;
  readonly timeoutS: number;
  /** Non-public addresses that were approved, for this origin only. */
  readonly agreed: { readonly origin: string; readonly addresses: readonly string[] };
  readonly lookup: Lookup;
}

function parseUrl(raw: string): URL {
  const text = raw.trim();
  if (!URL.canParse(text))
    throw new ToolFailure(`${raw} is not an address. Give a complete one: https://host/path.`);
  const url = new URL(text);
  assertUsable(url);
  url.hash = "";
  return url;
}

function assertUsable({ protocol, username, password }: URL): void {
  if (protocol !== "https:" && protocol !== "http:")
    throw new ToolFailure(
      `Only http and https can be fetched, not ${protocol} addresses. Use another address.`,
    );
  if (username !== "" || password !== "")
    throw new ToolFailure("An address with a user name or password in it is not fetched. Leave them out.");
}

function createPermission(url: URL, inner: readonly string[]): PermissionRequest {
  const subject = { text: url.href, reason: `fetches ${url.href}` };
  if (inner.length === 0) return { permission: "webfetch", subjects: [subject], always: [`${url.origin}/*`] };
  const confirm = `${url.hostname} is ${inner.join(", ")}: an address of this computer or of a network that it is in`;
  const local = inner.map((address) => ({ text: address, confirm }));
  return { permission: "webfetch", subjects: [subject, ...local], always: [] };
}

type FetchResult =
  | { end: "elsewhere"; from: URL; to: URL }
  | {
      end: "page";
      content: PageContent;
      path: readonly URL[];
      status: number;
      contentType: string;
      bytes: Buffer;
    };

async function runFetch(fetch: Fetch, signal: AbortSignal): Promise<FetchResult> {
  const timeout = AbortSignal.timeout(fetch.timeoutS * 1000);
  try {
    return await fetchPage(fetch, AbortSignal.any([signal, timeout]));
  } catch (error) {
    if (signal.aborted || !timeout.aborted) throw error;
    throw new ToolFailure(
      `${fetch.url.host} did not answer in full within ${fetch.timeoutS} seconds. Try again with a longer timeout, or another address.`,
      { cause: error },
    );
  }
}

async function fetchPage(fetch: Fetch, signal: AbortSignal): Promise<FetchResult> {
  const passed: URL[] = [];
  let { url } = fetch;
  while (passed.length <= redirectLimit) {
    const addresses = await reachableAddresses(fetch, url);
    const response = await sendRequest({
      url,
      method: "GET",
      headers: createHeaders(fetch.format),
      addresses,
      signal,
    });
    const target = redirectTarget(response, url);
    if (target === undefined) return readResponse(fetch, [...passed, url], response, signal);
    response.discard();
    await reachableAddresses(fetch, target);
    if (!isSameSite(url, target)) return { end: "elsewhere", from: url, to: target };
    passed.push(url);
    url = target;
  }
  throw new ToolFailure(
    `${fetch.url.href} redirects more than ${redirectLimit} times. Nothing was fetched. Use another address.`,
  );
}

/** Resolves the host again for each request; the connection uses only these addresses. */
async function reachableAddresses({ agreed, lookup }: Fetch, url: URL): Promise<readonly string[]> {
  const addresses = await resolveAddresses(url, lookup);
  const isAgreed = (address: string) => url.origin === agreed.origin && agreed.addresses.includes(address);
  const inner = addresses.find((address) => !isPublicAddress(address) && !isAgreed(address));
  if (inner === undefined) return addresses;
  throw new ToolFailure(
    `Not followed: ${url.href} (${inner}) is an address of this computer or of a network that it is in. To fetch it, call webfetch with that address; the user will be asked.`,
  );
}

function createHeaders(format: PageFormat): Record<string, string> {
  const wanted = {
    markdown: "text/markdown, text/html;q=0.9",
    text: "text/plain, text/html;q=0.9",
    html: "text/html",
  };
  return {
    "user-agent": "Mozilla/5.0 (compatible; Fairlead)",
    accept: `${wanted[format]}, application/json;q=0.8, */*;q=0.5`,
    "accept-language": "en, *;q=0.5",
  };
}

function redirectTarget({ status, headers }: WebResponse, from: URL): URL | undefined {
  const { location } = headers;
  if (![301, 302, 303, 307, 308].includes(status) || location === undefined) return undefined;
  if (!URL.canParse(location, from.href))
    throw new ToolFailure(
      `${from.href} redirects to ${JSON.stringify(location)}, which is not an address. Use another one.`,
    );
  const target = new URL(location, from);
  assertUsable(target);
  return target;
}

/** Whether both are the same host, ignoring `www.`, without a downgrade to http; permission covers no other site. */
function isSameSite(from: URL, to: URL): boolean {
  const bare = ({ hostname }: URL) => hostname.replace(/^www\./, "");
  const isDowngrade = from.protocol === "https:" && to.protocol === "http:";
  return bare(from) === bare(to) && from.port === to.port && !isDowngrade;
}

async function readResponse(
  { url: requestedUrl, format }: Fetch,
  path: readonly URL[],
  response: WebResponse,
  signal: AbortSignal,
): Promise<FetchResult> {
  const bytes = await response.read();
  const contentType = response.headers["content-type"] ?? "";
  // Loaded lazily: the Markdown converter is as large as all tools together.
  const { readPageInWorker } = await import("./page-thread.ts");
  const content = await readPageInWorker(
    { bytes, contentType, url: path.at(-1) ?? requestedUrl },
    format,
    signal,
  );
  return { end: "page", content, path, status: response.status, contentType, bytes };
}

function describeRedirect(from: URL, to: URL): ToolResult {
  return {
    status: "completed",
    output: `${from.href} redirects to ${to.href}\nThat is another site, which needs its own permission. Nothing was fetched. Call webfetch with that address if you want it.`,
    metadata: { url: from.href, redirect: to.href },
  };
}

function isGood(status: number): boolean {
  return status >= 200 && status <= 299;
}

async function renderResult(fetched: FetchResult, signal: AbortSignal): Promise<ToolResult> {
  if (fetched.end === "elsewhere") return describeRedirect(fetched.from, fetched.to);
  const { content, path: passed, status, contentType, bytes } = fetched;
  const path = passed.map(({ href }) => href).join(" → ");
  const metadata = { url: passed.at(-1)?.href, status, contentType, bytes: bytes.byteLength };
  if (!isGood(status)) {
    const body = content.kind === "text" ? `\n${excerpt(content.text, errorExcerpt)}` : "";
    return {
      status: "failed",
      error: `${path} answered with status ${status}.${body}`,
      metadata,
    };
  }
  const head = `${path} (${contentType || "no type given"}, ${bytes.byteLength} bytes)`;
  return { ...(await renderContent(content, head, bytes, signal)), metadata };
}

async function renderContent(
  content: PageContent,
  head: string,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<ToolResult> {
  switch (content.kind) {
    case "text":
      return {
        status: "completed",
        output: content.text === "" ? `${head}\n(no text)` : `${head}\n\n${content.text}`,
      };
    case "image": {
      const fitted = await fitMedium({ bytes, mime: content.mime }, signal);
      if (fitted.outcome === "unfit")
        return { status: "failed", error: `${head} cannot be shown: ${fitted.reason}` };
      const note = fitted.note && `, ${fitted.note}`;
      return { status: "completed", output: `${head}${note}`, attachments: [fitted.attachment] };
    }
    case "binary":
      return {
        status: "failed",
        error: `${head} is neither text nor an image that can be shown. Download it with a command if it is needed.`,
      };
  }
}
