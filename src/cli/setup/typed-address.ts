import { isKnownToken } from "../../base/secrets/secret-forms.ts";

export type TypedAddress =
  | { outcome: "address"; url: string }
  /** Completed from partial input; the user must confirm it. */
  | { outcome: "guess"; url: string }
  | { outcome: "none"; problem: string };

/** Paths of single requests, which people copy from examples. */
const requestPaths = /\/(?:chat\/completions|completions|responses|messages|models)\/*$/;

/** Reads the address of an OpenAI-compatible server as people type it. */
export function readAddress(written: string): TypedAddress {
  const typed = written
    .trim()
    .replace(/^["'`<]+|["'`>,;]+$/g, "")
    .replace(requestPaths, "");
  if (isKnownToken(typed)) return noAddress("That looks like a key, not an address.");
  if (/^https?:\/\//i.test(typed)) {
    if (/\s/.test(typed) || !URL.canParse(typed)) return noAddress(`Not an address. ${example}`);
    return { outcome: "address", url: typed.replace(/\/+$/, "") };
  }
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(typed)) return noAddress("An address begins with http:// or https://.");
  const [, host = "", port = "", path = ""] = hostPattern.exec(typed) ?? [];
  const scheme = isNearby(host, port) ? "http" : "https";
  const url = `${scheme}://${host}${port}${/^\/*$/.test(path) ? "/v1" : path.replace(/\/+$/, "")}`;
  return host === "" || !URL.canParse(url)
    ? noAddress(`Not an address. ${example}`)
    : { outcome: "guess", url };
}

const example = "Write one such as https://models.example.com/v1.";

/** Matches a name with dots, `localhost`, an IP address, or any name with a port; then a port and a path. */
const hostPattern = /^(localhost|[\w-]+(?:\.[\w-]+)+|\[[\da-f:.]+\]|[\w-]+(?=:\d))(:\d{1,5})?(\/\S*)?$/i;

/** Whether a host is local or in the local network, where model servers rarely have certificates. */
function isNearby(host: string, port: string): boolean {
  if (!host.includes(".")) return port !== "" || host === "localhost";
  return /^(?:127|10|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.[\d.]+$|\.local$/i.test(host);
}

function noAddress(problem: string): TypedAddress {
  return { outcome: "none", problem };
}
