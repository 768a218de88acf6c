import { statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Ignore files that a search reads first. */
const ruleFiles = [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"];
const ruleNames: ReadonlySet<string> = new Set(ruleFiles);
/** Larger ignore files are skipped, because parsing them could take minutes and gigabytes. */
export const maxRuleBytes = 1_000_000;

/** Thrown for a folder that would block ripgrep: its ignore file is a pipe, a device or huge. */
export class UnusualIgnoreRulesError extends Error {
  override readonly name = "OddRules";
}

/** Whether an ignore file in the folder or a parent is a pipe, a device or huge. */
export function hasUnusualRulesAbove(folder: string): boolean {
  const above = dirname(folder);
  return (
    ruleFiles.some((name) => isUnusual(join(folder, name))) ||
    (above !== folder && hasUnusualRulesAbove(above))
  );
}

/** Checks all subfolders, until one is found or the signal aborts. Does not follow links. */
export async function hasUnusualRulesBelow(folder: string, signal: AbortSignal): Promise<boolean> {
  const folders = [folder];
  // Breadth first, because nearby folders are more likely.
  for (const at of folders) {
    if (signal.aborted) return false;
    for (const entry of await readEntries(at)) {
      if (entry.isDirectory() && entry.name !== ".git") folders.push(join(at, entry.name));
      const rules = entry.name === ".git" ? ".git/info/exclude" : entry.name;
      if (ruleNames.has(rules) && isUnusual(join(at, rules))) return true;
    }
  }
  return false;
}

async function readEntries(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch {
    // The search cannot read it either.
    return [];
  }
}

/** Follows links, as reading does. A folder of this name is read as empty. */
function isUnusual(path: string): boolean {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined || found.isDirectory()) return false;
    return !found.isFile() || found.size > maxRuleBytes;
  } catch {
    return false;
  }
}
