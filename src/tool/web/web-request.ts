import { lookup as lookupName } from "node:dns/promises";
import { request as requestPlain } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from "node:http";
import { request as requestSecure } from "node:https";
import { isIP, isIPv6 } from "node:net";
import type { LookupFunction } from "node:net";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { destroyOnAbort, orAfter } from "../../base/async.ts";
import { codeOf, sentenceOf } from "../../base/errors.ts";
import { waitForResponse } from "../../base/http-answer.ts";
import { ToolFailure } from "../tool.ts";

/** Resolves a host name to IP addresses. */
export type Lookup = (hostname: string) => Promise<readonly string[]>;

export interface WebRequest {
  readonly url: URL;
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The only addresses to connect to, even if the name now resolves to others. */
  readonly addresses: readonly string[];
  readonly signal: AbortSignal;
}

export interface WebResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Reads the whole body, decompressed. Throws {@link ToolFailure} above {@link bodyLimitBytes}. */
  read(): Promise<Buffer>;
  /** Closes the connection without reading the body. */
  discard(): void;
}

/** Limit of a body, both compressed and decompressed. */
export const bodyLimitBytes = 5 * 1024 * 1024;
const lookupLimitMs = 10_000;

export const systemLookup: Lookup = async (hostname) => {
  const found = await lookupName(hostname, { all: true });
  return found.map(({ address }) => address);
};

/** Resolves a URL's host. Throws {@link ToolFailure} if there are no addresses. */
export async function resolveAddresses({ hostname }: URL, lookup: Lookup): Promise<readonly string[]> {
  const bare = hostname.replace(/^\[|\]$/g, "");
  if (isIP(bare) !== 0) return [bare];
  const found = await explainNetworkErrors(hostname, () => orAfter(lookup(bare), lookupLimitMs, undefined));
  if (found === undefined || found.length === 0)
    throw new ToolFailure(`${hostname}: no address was found for the name. Check its spelling.`);
  return found;
}

/** Sends a request and resolves with the response's head. Does not follow redirects. */
export async function sendRequest(request: WebRequest): Promise<WebResponse> {
  const response = await explainNetworkErrors(request.url.host, () => send(request));
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    read: () => explainNetworkErrors(request.url.host, () => readBody(response, request.signal)),
    discard: () => response.destroy(),
  };
}

async function send({ url, method, headers, body, addresses, signal }: WebRequest): Promise<IncomingMessage> {
  const options: RequestOptions = {
    method,
    headers: { ...headers, "accept-encoding": "gzip, deflate, br" },
    lookup: createLookup(addresses),
    // A reused connection might lead to an address that was not checked.
    agent: false,
  };
  const request = url.protocol === "https:" ? requestSecure(url, options) : requestPlain(url, options);
  destroyOnAbort(request, signal);
  try {
    return await waitForResponse(request.end(body));
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  }
}

function createLookup(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
  return (_, { all }, callback) => {
    const [first] = found;
    if (all === true) callback(null, found);
    else callback(null, first?.address ?? "", first?.family);
  };
}

async function readBody(response: IncomingMessage, signal: AbortSignal): Promise<Buffer> {
  const announced = Number(response.headers["content-length"] ?? 0);
  if (announced > bodyLimitBytes) {
    response.destroy();
    throw tooLargeError();
  }
  const chunks: Buffer[] = [];
  const collect = async (source: AsyncIterable<Buffer>) => {
    for await (const chunk of limitBytes(source)) chunks.push(chunk);
  };
  const decoder = createDecoder(response.headers["content-encoding"] ?? "");
  await (decoder === undefined
    ? pipeline(response, collect, { signal })
    : pipeline(response, limitBytes, decoder, collect, { signal }));
  return Buffer.concat(chunks);
}

/** Throws above the limit, so that a small compressed body cannot grow huge. */
async function* limitBytes(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.byteLength;
    if (bytes > bodyLimitBytes) throw tooLargeError();
    yield chunk;
  }
}

function createDecoder(encoding: string) {
  switch (encoding.trim().toLowerCase()) {
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "deflate":
      return createInflate();
    case "br":
      return createBrotliDecompress();
    case "":
    case "identity":
      return undefined;
    default:
      throw new ToolFailure(
        `The answer is compressed as ${encoding}, which cannot be read. Download it with a command.`,
      );
  }
}

function tooLargeError(): ToolFailure {
  return new ToolFailure(
    `The answer is larger than ${bodyLimitBytes} bytes. Ask for a smaller part, or download it with a command.`,
  );
}

/** Turns network errors into a {@link ToolFailure}; aborts and bugs pass unchanged. */
async function explainNetworkErrors<T>(host: string, task: () => Promise<T>): Promise<T> {
  try {
    return await task();
  } catch (error) {
    const code = codeOf(error);
    if (error instanceof ToolFailure || code === undefined || code === "ABORT_ERR") throw error;
    const problem = problems.get(code) ?? sentenceOf(error);
    throw new ToolFailure(`${host}: ${problem} Check the address, or go on without it.`, { cause: error });
  }
}

const problems: ReadonlyMap<string, string> = new Map([
  ["ENOTFOUND", "no address was found for the name. Check its spelling."],
  ["EAI_AGAIN", "the name could not be looked up. There may be no network."],
  ["ECONNREFUSED", "nothing answers there."],
  ["ECONNRESET", "the connection was ended before the answer was complete."],
  ["ERR_STREAM_PREMATURE_CLOSE", "the connection was ended before the answer was complete."],
  ["EHOSTUNREACH", "there is no way to that address from here."],
  ["ENETUNREACH", "there is no way to that address from here."],
  ["Z_DATA_ERROR", "the answer is not compressed as it says."],
  ["Z_BUF_ERROR", "the compressed answer is cut off."],
]);
