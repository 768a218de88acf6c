import { type Covers, isReplaced, isWithin, type SandboxProfile } from "./profile.ts";

/** Parts of /run that programs need: name resolution, and the programs of NixOS. Sockets of services stay hidden. */
const visibleInRun = ["/run/systemd/resolve", "/run/resolvconf", "/run/current-system"];

interface BubblewrapOptions {
  readonly cwd: string;
  readonly covers: Covers;
  readonly isFolder: (path: string) => boolean;
  /** The command gets an isolated network without connections to the outside. */
  readonly unshareNetwork: boolean;
}

/**
 * Returns the arguments of `bwrap` up to the command. Later mounts cover earlier ones.
 * - All paths of the profile must exist: bubblewrap would create missing ones on the disk.
 * - Background processes of the command survive it: no `--die-with-parent`.
 */
export function createBubblewrapArguments(
  profile: SandboxProfile,
  { cwd, covers, isFolder, unshareNetwork }: BubblewrapOptions,
): string[] {
  const { writable, pinned, readOnly, hidden, temporary, visible } = profile;
  const bind = (option: string) => (path: string) => [option, path, path];
  const byDepth = (paths: readonly string[]) => [...new Set(paths)].toSorted();
  const isInOther = (path: string) =>
    [...visible, ...writable].some((other) => other !== path && isReplaced(other) && isWithin(path, other));
  // A link in a folder that is mounted anyway cannot be mounted over.
  const covered = visible.filter((path) => isReplaced(path) && !writable.includes(path) && !isInOther(path));
  const shown = [...covered, ...writable];
  const cover = (path: string) => ["--ro-bind", isFolder(path) ? covers.folder : covers.file, path];
  return [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    ...(unshareNetwork ? ["--unshare-net"] : []),
    // Without capabilities root is an ordinary user to the files of the sandbox.
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--tmpfs",
    "/run",
    ...visibleInRun.flatMap(bind("--ro-bind-try")),
    "--bind",
    temporary,
    "/tmp",
    ...byDepth(covered).flatMap(bind("--ro-bind")),
    ...byDepth([temporary, ...writable]).flatMap(bind("--bind")),
    ...byDepth(pinned).flatMap(bind("--bind")),
    ...byDepth(readOnly).flatMap(bind("--ro-bind")),
    ...byDepth(hidden)
      .filter((path) => shown.some((folder) => isWithin(path, folder)) || !isReplaced(path))
      .filter((path) => !hidden.some((other) => other !== path && isWithin(path, other)))
      .flatMap(cover),
    "--chdir",
    cwd,
    "--",
  ];
}
