import { sleep } from "../../base/async.ts";
import { codeOf } from "../../base/errors.ts";
import { isLoopback } from "../../base/loopback.ts";
import { presets } from "./catalog.ts";
import type { Send } from "../http.ts";

/** How long to wait for a local server that may be starting. */
const startingMs = 700;

/** Retries once after {@link startingMs} if a local server refuses the connection. */
export function retryLocal(send: Send): Send {
  return async (url, request) => {
    try {
      return await send(url, request);
    } catch (error) {
      if (!isLocalRefusal(error, url)) throw error;
      await sleep(startingMs, request.signal);
      return send(url, request);
    }
  };
}

/** The target of a request. */
export interface Destination {
  /** A provider's id. */
  readonly provider: string;
  readonly baseURL: string;
}

/** Returns a message that names the server to start; undefined unless a local server refused the connection. */
export function describeNotRunning(error: unknown, { provider, baseURL }: Destination): string | undefined {
  const url = URL.parse(baseURL);
  if (url === null || !isLocalRefusal(error, url)) return undefined;
  const preset =
    presets.find(({ id, local }) => local === true && id === provider) ??
    presets.find(({ startCommand, baseURL }) => startCommand !== undefined && isOwnPort(url, baseURL));
  const start =
    preset?.startCommand === undefined
      ? `the server of the provider ${provider}`
      : `${preset.name} (${preset.startCommand})`;
  return `Nothing listens on ${url.origin}. Start ${start}, or correct the address, and try again.`;
}

/** Returns whether the port identifies the program. Many programs use 8000 and 8080. */
function isOwnPort(url: URL, presetURL: string): boolean {
  const { port } = new URL(presetURL);
  return url.port === port && !port.startsWith("80");
}

function isLocalRefusal(error: unknown, { href }: URL): boolean {
  return codeOf(error) === "ECONNREFUSED" && isLoopback(href);
}
