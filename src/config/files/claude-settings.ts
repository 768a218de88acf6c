import { basename, dirname } from "node:path";
import { isRecord } from "../../base/text/record.ts";

/** Files with hooks in Claude Code's form, in a folder `.claude`; later names take precedence. */
export const claudeSettingsNames: readonly string[] = ["settings.json", "settings.local.json"];

/** Returns whether the file has settings in Claude Code's form. */
export function isClaudeSettings(path: string): boolean {
  return basename(dirname(path)) === ".claude" && claudeSettingsNames.includes(basename(path));
}

/** Converts a settings file to a configuration. Everything but its hooks is omitted. */
export function fromClaudeSettings(value: unknown): unknown {
  if (!isRecord(value)) return {};
  if (value["disableAllHooks"] === true) return { hooks: false };
  return value["hooks"] === undefined ? {} : { hooks: value["hooks"] };
}
