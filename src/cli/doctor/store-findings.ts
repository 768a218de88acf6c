import type { App } from "../../app.ts";
import { messageOf } from "../../base/errors.ts";
import type { Finding } from "./finding.ts";

/** Paths named in one finding. */
const pathLimit = 5;

/** Reports damaged files of the store, and sessions that were rebuilt without their own file. */
export async function damageFindings(app: App): Promise<Finding[]> {
  try {
    const { aside, rebuilt, unplaced } = await (await app.store()).findDamage();
    return [...rebuilt.map(rebuiltFinding), ...unplaced.map(unplacedFinding), ...asideFinding(aside)];
  } catch (error) {
    return [{ what: "Stored files", found: "cannot be read", todo: messageOf(error) }];
  }
}

function rebuiltFinding(id: string): Finding {
  return {
    what: "Session",
    found: `${id} has lost its own file and is rebuilt from its other files`,
    todo: "Open it once: that stores the rebuilt file.",
  };
}

function unplacedFinding(id: string): Finding {
  return {
    what: "Session",
    found: `${id} has lost its own file, and nothing says in which folder it worked`,
    todo: `Open it in that folder: fairlead run --session ${id}`,
  };
}

function asideFinding(paths: readonly string[]): Finding[] {
  if (paths.length === 0) return [];
  const rest = paths.length - pathLimit;
  const named = paths.slice(0, pathLimit).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
  const found = `${paths.length} damaged ${paths.length === 1 ? "file was" : "files were"} moved aside`;
  return [{ what: "Stored files", found, todo: `Check them, then delete them: ${named}` }];
}
