import { sleep } from "../../base/async.ts";
import { codeOf } from "../../base/errors.ts";
import { isLoopback } from "../../base/loopback.ts";
import { presets } from "./catalog.ts";
import type { Send } from "../http.ts";

/** How long a server on this machine may still be starting when it refuses a connection. */
const startingMs = 700;

/** Sends once more after a moment where a server on this machine refuses the connection: it may be starting. */
export function patientWithLocal(send: Send): Send {
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

/** Where a request went. */
export interface Destination {
  /** A provider's id. */
  readonly provider: string;
  readonly baseURL: string;
}

/** Says which server to start; undefined unless a server on this machine refused the connection. */
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

/** Whether the port tells the program: 8000 and 8080 are anybody's. */
function isOwnPort(url: URL, presetURL: string): boolean {
  const { port } = new URL(presetURL);
  return url.port === port && !port.startsWith("80");
}

function isLocalRefusal(error: unknown, { href }: URL): boolean {
  return codeOf(error) === "ECONNREFUSED" && isLoopback(href);
}
