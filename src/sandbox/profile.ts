/**
 * The permissions of a confined process. All paths are absolute and real. All other files may be read but not
 * written.
 */
export interface SandboxProfile {
  /** Files and folders that may be written, with everything below. */
  readonly writable: readonly string[];
  /** Folders in `writable` that must stay where they are, so that nothing can replace what is protected in them. */
  readonly pinned: readonly string[];
  /** Files and folders in `writable` that may only be read. */
  readonly readOnly: readonly string[];
  /** Files and folders that may be neither read nor written. */
  readonly hidden: readonly string[];
  /** The folder for temporary files; on Linux it is also /tmp. */
  readonly temporary: string;
  /**
   * Files, folders and links that must stay visible although the sandbox replaces one of their parent
   * folders.
   */
  readonly visible: readonly string[];
  /**
   * Without network a process reaches loopback ports of confined processes (on macOS: all of this computer's), and
   * `hosts`.
   */
  readonly network: boolean;
  /** Hosts that may be reached without network, by a proxy: `example.org`, `*.example.org`, `example.org:8080`. */
  readonly hosts: readonly string[];
}

/** An unreadable file and an unreadable folder, mounted over hidden paths. */
export interface Covers {
  readonly file: string;
  readonly folder: string;
}

/** Whether the path is in a folder that the sandbox on Linux replaces by another one. */
export function isReplaced(path: string): boolean {
  return isWithin(path, "/tmp") || isWithin(path, "/run");
}

/** Whether the path is the folder or below it. Both are absolute. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}
