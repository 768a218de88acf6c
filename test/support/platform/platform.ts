import { join } from "node:path";

// Conditions of single tests: `test.skipIf(lacksFileModes)` names the reason why a system leaves one out.

const isWindows = process.platform === "win32";

/** Windows has no pipes in folders and no `/dev`. */
export const lacksPipesAndDevices = isWindows;

/** Windows has one bit for "read-only", and no executable files. */
export const lacksFileModes = isWindows;

/** Windows does not rename a folder while a file in it is open. */
export const lacksRenamesInUse = isWindows;

/** Windows starts no scripts by their first line, and has no `/bin/sh`. */
export const lacksShellScripts = isWindows;

/** Windows has no process groups, and ends a process at once on any signal. */
export const lacksSignals = isWindows;

/** On Windows the processes that an ended command left cannot be found: they go on until they end by themselves. */
export const lacksProcessGroups = isWindows;

/** Windows forbids `<>:"|?*`, backslashes and control characters in names. */
export const lacksOddNames = isWindows;

/** On Windows no side of a pipe can be ended without the other: who reads its own output waits. */
export const lacksHalfClosedPipes = isWindows;

/** Git's bash on Windows makes copies for `ln -s`. */
export const lacksShellLinks = isWindows;

/** Windows has its own paths, which other systems know as those of another machine, and calls too long ones missing. */
export const opensWindowsPaths = isWindows;

/** Windows has no watchdog: commands and folders of a killed program stay. */
export const lacksWatchdog = isWindows;

/** Windows has no `ulimit`: no limits of open files or of the size of a file. */
export const lacksResourceLimits = isWindows;

/** Only Linux and macOS have a sandbox for commands: Windows does not offer its approval mode. */
export const lacksSandbox = isWindows;

/** Windows has no sockets that only one user can open: no process joins the turn of another, or leaves one behind. */
export const lacksJoinedTurns = isWindows;

/** Windows has no `ps`, by which tests read the memory of a process. */
export const lacksPs = isWindows;

/** Windows knows the home folder of each user, also without variables. */
export const lacksUserDatabase = isWindows;

/** A command that prints its folder as the program does. `pwd` of Git for Windows prints `/c/…`. */
export const printFolder = `node -p "process.cwd()"`;

/** Where Zed's settings are, from the home folder. */
export const zedSettings = isWindows ? "AppData/Roaming/Zed/settings.json" : ".config/zed/settings.json";

/**
 * A shell command that runs until it is ended. Windows finds processes by their parent, which programs of Git's bash
 * hide.
 */
export const endlessCommand = isWindows
  ? `'${process.execPath.replaceAll("\\", "/")}' -e 'setTimeout(Date, 1e6)'`
  : "sleep 1000";

/** The folder of the programs that come with Windows, which has `cmd.exe` and neither Node, git nor Git's bash. */
export const windowsPrograms = join(process.env["SystemRoot"] ?? "C:\\Windows", "System32");

/** Returns a command that prints the system's id of a process of its shell, such as `$$`. */
export const printPid = (pid: string): string =>
  isWindows
    ? `{ read -r id < /proc/${pid}/winpid; } 2>/dev/null || id=${pid}; echo pid $id`
    : `echo pid ${pid}`;

/** Returns the mode that a file or folder with this mode shows on this system. */
export const shownMode = (mode: number): number => (lacksFileModes ? 0o666 : mode);
