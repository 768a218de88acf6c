import { isIPv6 } from "node:net";
import { matches } from "../../permission/pattern.ts";

/** A host and port that a program wants to reach. */
export interface Target {
  readonly host: string;
  readonly port: number;
}

const portAtEnd = /:\d+$/;
/** Names of this computer, such as `localhost:8080`. */
const ownName = /^(?:localhost|.+\.localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1?\])(?::\d+)?$/;
/** Ports that patterns and questions omit: HTTP and HTTPS. */
const webPorts: readonly number[] = [80, 443];

/** Returns `example.org` for the ports of the web, `example.org:8080` for others. */
export function formatTarget({ host, port }: Target): string {
  const name = isIPv6(host) ? `[${host}]` : host.toLowerCase().replace(/\.$/, "");
  return webPorts.includes(port) ? name : `${name}:${port}`;
}

/** Whether a configured host covers a formatted target. A wildcard never covers this computer. */
export function matchesHost(pattern: string, target: string): boolean {
  if (pattern.includes("*") && ownName.test(target)) return false;
  if (portAtEnd.test(target) && !/:(?:\d+|\*)$/.test(pattern)) return false;
  return matches(pattern.toLowerCase(), target);
}

/** Parses `host:port`; undefined for other texts. */
export function parseTarget(text: string): Target | undefined {
  const url = `http://${text}/`;
  if (!portAtEnd.test(text) || /[/@]/.test(text) || !URL.canParse(url)) return undefined;
  const { hostname, port } = new URL(url);
  return { host: hostname.replaceAll(/[[\]]/g, ""), port: port === "" ? (webPorts[0] ?? 0) : Number(port) };
}
