import { basename } from "node:path";
import type { SandboxProfile } from "./profile.ts";

const readOnlyErrors = /read-only file ?system|\bEROFS\b|Errno 30\b|os error 30\b/i;
/** What Seatbelt answers to everything that it refuses. */
const seatbeltErrors = /operation not permitted|\bEPERM\b/i;
const connectionErrors = /\bconnect|\bsocket\b|\bsend(?:to|msg)?\b/i;
const refusedErrors = /permission denied|operation not permitted|\bEACCES\b|\bEPERM\b|Access is denied/i;
const busyErrors = /device or resource busy|\bEBUSY\b/i;
const networkErrors =
  /could not resolve (?:host|proxy)|name resolution|name or service not known|nodename nor servname|no such host|network is unreachable|\b(?:ENETUNREACH|EAI_AGAIN|ENOTFOUND)\b|failed to (?:connect|resolve)|could ?n[o']t connect to server|no route to host|unable to resolve host|failed to lookup address|dial tcp|cannot connect to the docker daemon/i;
/** An address of the sandbox itself, where a refused connection is the program's own. */
const loopback = /\b(?:localhost|127(?:\.\d+){3})\b|\[::1\]|::1\b/;

/** Characters at the end of the output that are searched: errors come last. */
const outputLimit = 20_000;

/** Returns why the sandbox made a command fail, as far as its output shows it; undefined if it shows nothing of it. */
export function findBlockedReason(
  output: string,
  profile: SandboxProfile,
  platform = process.platform,
): string | undefined {
  const lines = output.slice(-outputLimit).split("\n");
  const find = (isIt: (line: string) => boolean) => lines.find(isIt);
  const named = (paths: readonly string[]) => (line: string) =>
    paths.find((path) => line.includes(path) || mentions(line, basename(path)));
  const hidden = named(profile.hidden);
  const fixed = named([...profile.readOnly, ...profile.pinned, ...profile.hidden]);
  const refused = find((line) => refusedErrors.test(line) && hidden(line) !== undefined);
  if (refused !== undefined) return `it may not read ${hidden(refused) ?? ""}`;
  const busy = find((line) => busyErrors.test(line) && fixed(line) !== undefined);
  if (busy !== undefined) return `it may not change ${fixed(busy) ?? ""}`;
  const isConnection = (line: string) => connectionErrors.test(line) || networkErrors.test(line);
  const isRefusedBySeatbelt = (line: string) => platform === "darwin" && seatbeltErrors.test(line);
  const readOnly = find(
    (line) => readOnlyErrors.test(line) || (isRefusedBySeatbelt(line) && !isConnection(line)),
  );
  if (readOnly !== undefined) {
    const path = fixed(readOnly);
    return path === undefined
      ? "it may write only in the workspace and in the folder for temporary files"
      : `it may not change ${path}`;
  }
  const isOffline =
    !profile.network &&
    find((line) => (networkErrors.test(line) || isRefusedBySeatbelt(line)) && !loopback.test(line));
  return isOffline ? "it has no network" : undefined;
}

/** Whether the line contains the name as a word. */
function mentions(line: string, name: string): boolean {
  const at = line.indexOf(name);
  const isWordPart = (character: string | undefined) => character !== undefined && /[\w.-]/.test(character);
  return at !== -1 && !isWordPart(line[at - 1]) && !isWordPart(line[at + name.length]);
}
