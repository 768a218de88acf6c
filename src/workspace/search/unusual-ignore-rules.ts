import { statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Files of rules that a search reads before it looks at anything else. */
const ruleFiles = [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"];
const ruleNames: ReadonlySet<string> = new Set(ruleFiles);
/** Rules of more bytes are not read: nobody writes that many, and reading them can take minutes and gigabytes. */
export const mostRuleBytes = 1_000_000;

/** Thrown for a folder that ripgrep cannot search: in a pipe it would wait for ever, from a device or a huge file read for ever. */
export class OddRules extends Error {
  override readonly name = "OddRules";
}

/** Whether a file of rules in the folder, or in one above it, is a pipe, a device or huge. */
export function hasOddRulesAbove(folder: string): boolean {
  const above = dirname(folder);
  return ruleFiles.some((name) => isOdd(join(folder, name))) || (above !== folder && hasOddRulesAbove(above));
}

/** The same for all folders below; looks until it finds one or the signal aborts. Links are not followed. */
export async function hasOddRulesBelow(folder: string, signal: AbortSignal): Promise<boolean> {
  const folders = [folder];
  // What is found is looked through in turn: the nearest first.
  for (const at of folders) {
    if (signal.aborted) return false;
    for (const entry of await entriesOf(at)) {
      if (entry.isDirectory() && entry.name !== ".git") folders.push(join(at, entry.name));
      const rules = entry.name === ".git" ? ".git/info/exclude" : entry.name;
      if (ruleNames.has(rules) && isOdd(join(at, rules))) return true;
    }
  }
  return false;
}

async function entriesOf(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch {
    // Closed to us, and to the search too.
    return [];
  }
}

/** Follows links, as reading does. A folder of this name is read as empty. */
function isOdd(path: string): boolean {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined || found.isDirectory()) return false;
    return !found.isFile() || found.size > mostRuleBytes;
  } catch {
    return false;
  }
}
