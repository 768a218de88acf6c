/** A system that releases have an archive for. */
export interface Target {
  readonly name: string;
  /** As in `process.platform` and `process.arch`. */
  readonly platform: string;
  readonly arch: string;
  /** Its name in the registry of agents. musl has none: the registry's clients install the archives for glibc. */
  readonly registry?: string;
  /** Node's program is linked to this C library. */
  readonly libc?: "musl";
  /** End of the name of Node's download; those for musl come from Node's unofficial builds. */
  readonly node: string;
}

export const targets: readonly Target[] = [
  {
    name: "linux-x64",
    platform: "linux",
    arch: "x64",
    registry: "linux-x86_64",
    node: "linux-x64.tar.gz",
  },
  {
    name: "linux-arm64",
    platform: "linux",
    arch: "arm64",
    registry: "linux-aarch64",
    node: "linux-arm64.tar.gz",
  },
  { name: "linux-x64-musl", platform: "linux", arch: "x64", libc: "musl", node: "linux-x64-musl.tar.gz" },
  {
    name: "linux-arm64-musl",
    platform: "linux",
    arch: "arm64",
    libc: "musl",
    node: "linux-arm64-musl.tar.gz",
  },
  {
    name: "darwin-arm64",
    platform: "darwin",
    arch: "arm64",
    registry: "darwin-aarch64",
    node: "darwin-arm64.tar.gz",
  },
  {
    name: "darwin-x64",
    platform: "darwin",
    arch: "x64",
    registry: "darwin-x86_64",
    node: "darwin-x64.tar.gz",
  },
  {
    name: "win32-x64",
    platform: "win32",
    arch: "x64",
    registry: "windows-x86_64",
    node: "win-x64/node.exe",
  },
];

export const archiveName = (version: string, target: Target): string =>
  `fairlead-${version}-${target.name}.tar.gz`;

/** The program of an archive, as a client starts it from the unpacked folder. */
export const commandOf = (target: Target): string =>
  target.platform === "win32" ? "./fairlead.cmd" : "./fairlead";

export function targetNamed(name: string): Target {
  const found = targets.find((target) => target.name === name);
  if (found === undefined)
    throw new Error(
      `No target is named ${name}. There are ${targets.map((target) => target.name).join(", ")}.`,
    );
  return found;
}
