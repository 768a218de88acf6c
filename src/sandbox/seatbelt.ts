import type { SandboxProfile } from "./profile.ts";

/** Devices that most programs write. */
const writableDevices = [
  "/dev/null",
  "/dev/zero",
  "/dev/stdout",
  "/dev/stderr",
  "/dev/tty",
  "/dev/ptmx",
  "/dev/dtracehelper",
];

/** Opening a file in this folder duplicates a descriptor of the process. `/dev/stdout` is a link to such a file. */
const descriptorFolder = "/dev/fd";

/** Returns a profile for `sandbox-exec`, in its language. The last rule that matches decides. */
export function createSeatbeltProfile(profile: SandboxProfile): string {
  const { writable, readOnly, hidden, pinned, temporary, network } = profile;
  const folders = [temporary, ...writable];
  return [
    "(version 1)",
    "(allow default)",
    // Programs started through the system would run outside the sandbox.
    "(deny appleevent-send)",
    "(deny lsopen)",
    "(deny file-write*)",
    rule("allow file-write*", [
      ...folders.map(subpath),
      ...writableDevices.map(literal),
      subpath(descriptorFolder),
      '(regex #"^/dev/ttys[0-9]+$")',
    ]),
    ...optionalRule("deny file-write*", readOnly.map(subpath)),
    ...optionalRule("deny file-write-unlink", pinned.map(literal)),
    ...optionalRule("deny file-read* file-write*", hidden.map(subpath)),
    ...(network ? [] : networkRules),
    "",
  ].join("\n");
}

/**
 * Allows connections to ports of this computer, and no sockets of services, not even in writable folders. `local` is the
 * process's own end of a connection, so that an outbound rule with it would allow connections to every host.
 */
const networkRules = [
  "(deny network*)",
  '(allow network-bind (local ip "localhost:*"))',
  '(allow network-inbound (local ip "localhost:*"))',
  '(allow network-outbound (remote ip "localhost:*"))',
];

function rule(head: string, filters: readonly string[]): string {
  return [`(${head}`, ...filters.map((filter) => `  ${filter}`)].join("\n") + ")";
}

function optionalRule(head: string, filters: readonly string[]): string[] {
  return filters.length === 0 ? [] : [rule(head, filters)];
}

const subpath = (path: string): string => `(subpath ${quote(path)})`;
const literal = (path: string): string => `(literal ${quote(path)})`;

/** Quotes a path as a string of the profile language. */
function quote(path: string): string {
  return `"${path.replaceAll(/["\\]/g, "\\$&")}"`;
}
