import { collect } from "../../base/async.ts";
import { changesOf } from "../../conversation/checkpoints.ts";
import { omitReverted } from "../../conversation/visible-messages.ts";
import { formatPatch, type OmittedFile } from "../../reports/session-patch.ts";
import { listChange } from "../../undo/change-list.ts";
import { findNetChanges } from "../../undo/net-changes.ts";
import { formatPath } from "../../workspace/paths.ts";
import { findWorktree } from "../../workspace/worktree.ts";
import type { Call } from "../command-line/command.ts";
import { openLocalApp } from "../local-app.ts";
import { exitCodes } from "../terminal/help.ts";
import { print, printJson, printTable, sanitizeFor, writeNotice, writeToStderr } from "../terminal/output.ts";
import { findCalledSession } from "./find-session.ts";

/** Prints what a session changed, as a patch, a table or JSON. The files on the disk do not count. */
export async function diffSession(call: Call): Promise<number> {
  const { app, project } = await openLocalApp(call.text("cwd"));
  const store = await app.store();
  const info = await findCalledSession(store, call);
  const messages = await collect(omitReverted(store.messages(info.id), info.revert));
  const { snapshots } = project.workspace;
  const nets = await findNetChanges(changesOf(messages), { snapshots });
  const root = (await findWorktree(info.cwd)) ?? info.cwd;
  if (call.has("json") || call.has("stat")) {
    const files = await Promise.all(nets.map((net) => listChange(net, snapshots)));
    const rows = files.map(({ change: { path, fromPath, operation, additions, deletions } }) => ({
      path: formatPath(root, path),
      ...(fromPath !== undefined && { fromPath: formatPath(root, fromPath) }),
      operation,
      additions,
      deletions,
    }));
    if (call.has("json")) await printJson({ session: info.id, root, files: rows });
    else
      await printTable(
        [
          { name: "added", right: true },
          { name: "removed", right: true },
          { name: "file", keepsEnd: true },
        ],
        rows.map(({ path, fromPath, additions, deletions }) => [
          `+${additions}`,
          `-${deletions}`,
          fromPath === undefined ? path : `${fromPath} → ${path}`,
        ]),
      );
  }
  if (nets.length === 0) writeToStderr(`The session ${info.id} changed no files.`);
  if (call.has("json") || call.has("stat")) return exitCodes.done;
  const { text, omitted } = await formatPatch(nets, root, snapshots);
  if (text !== "") await print(sanitizeFor(process.stdout, text.replace(/\n$/, "")));
  for (const one of omitted) writeNotice(describeOmitted(one, root));
  return omitted.length === 0 ? exitCodes.done : exitCodes.failed;
}

function describeOmitted({ path, reason }: OmittedFile, root: string): string {
  return `${formatPath(root, path)} is not in the patch: ${reason}.`;
}
