import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorFields } from "../base/error-fields.ts";
import { codeOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { ClientFeatures } from "./client-capabilities.ts";
import type { SessionView } from "./view/session-view.ts";

export const defaultsNotice = `Edits and commands that /undo can take back run without a question, and so do programs that Fairlead does not know, such as scripts of the project. Fairlead asks before commands that cannot be undone (git push, npm publish, deployments), for files outside the workspace, and before it reads or deletes .env files. To change this, run \`fairlead setup\` or set \`permission\` in the configuration; \`/permissions\` shows the rules. This message is shown once.`;

interface Installation {
  readonly folders: { readonly state: string };
  /** Whether sessions store nothing. */
  readonly isEphemeral: boolean;
  readonly log: Log;
}

/**
 * Explains once per installation what runs without a question: to a user who has not configured permissions. Never
 * rejects.
 */
export async function explainDefaults(
  view: SessionView,
  { isAttended, isScripted }: ClientFeatures,
  { folders, isEphemeral, log }: Installation,
): Promise<void> {
  const { info, project } = view.session;
  const hasDecided = project.config.permission !== undefined || info.approval !== undefined;
  if (hasDecided || isEphemeral || isScripted || !isAttended) return;
  try {
    await mkdir(folders.state, { recursive: true, mode: 0o700 });
    // Only one process creates the file.
    await writeFile(join(folders.state, "defaults-explained"), "", { flag: "wx", mode: 0o600 });
    view.notice("info", defaultsNotice);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") log.warn("default permissions not explained", errorFields(error));
  }
}
