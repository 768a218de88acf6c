// Conditions of single tests: `test.skipIf(lacksFileModes)` names the reason why a system leaves one out.

const isWindows = process.platform === "win32";

/** Windows has no pipes in folders and no `/dev`. */
export const lacksPipesAndDevices = isWindows;

/** Windows has one bit for "read-only", and no executable files. */
export const lacksFileModes = isWindows;

/** Windows starts no scripts by their first line, and has no `/bin/sh`. */
export const lacksShellScripts = isWindows;

/** Windows has no process groups, and ends a process at once on any signal. */
export const lacksSignals = isWindows;

/** Windows forbids `<>:"|?*`, backslashes and control characters in names. */
export const lacksOddNames = isWindows;

/** Windows has no watchdog: commands and folders of a killed program stay. */
export const lacksWatchdog = isWindows;

/** Where Zed's settings are, from the home folder. */
export const zedSettings = isWindows ? "AppData/Roaming/Zed/settings.json" : ".config/zed/settings.json";

/** Returns the mode that a file or folder with this mode shows on this system. */
export const shownMode = (mode: number): number => (lacksFileModes ? 0o666 : mode);
