import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { FileChange } from "../../src/message/part.ts";
import { toSlashes } from "../../src/base/files/paths.ts";
import { fileSteps } from "../../src/conversation/checkpoints.ts";
import { changesNoFiles } from "../../src/tool/bash/record-changes.ts";
import { bashTool } from "../../src/tool/bash/bash.ts";
import { shellAnalysis } from "../../src/tool/command-analysis.ts";
import type { ToolContext, ToolResult } from "../../src/tool/tool.ts";
import { type FileOutcome, type FileRevert, planRevert, reverse, revertFile } from "../../src/undo/revert.ts";
import { openProcesses } from "../../src/workspace/process/process.ts";
import { Watchdog } from "../../src/workspace/process/watchdog.ts";
import { findWorktree } from "../../src/workspace/worktree.ts";
import { toolPlace } from "../tool/tool-place.ts";
import type { Files } from "./temp.ts";

/** Variables of a shell whose git does not depend on the user's settings. */
const environment = {
  PATH: process.env["PATH"],
  HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@example.com",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a@example.com",
};

/** A folder in which the bash tool runs commands whose changes can be undone. */
export async function commandPlace(files: Files = {}) {
  const place = await toolPlace(files);
  const processes = openProcesses({ env: () => environment, watchdog: new Watchdog(environment.PATH) });
  const context: ToolContext = {
    ...place.context,
    workspace: { ...place.context.workspace, processes, worktree: await findWorktree(place.cwd) },
  };
  const nameOf = (path: string) => toSlashes(path.slice(place.cwd.length + 1));
  const tool = bashTool(shellAnalysis);
  const run = async (command: string, signal = context.signal): Promise<ToolResult> => {
    const prepared = await tool.prepare(tool.input.parse({ command }), context);
    return prepared.run({
      callId: "call",
      signal,
      isAllowed: () => true,
      output: () => {},
      waitUntilReady: async () => {},
      limits: { folder: context.workspace.outputFolder },
    });
  };
  const apply = async (plan: readonly FileRevert[]) => {
    const removedFirst = plan.toSorted((one, other) => rank(one) - rank(other));
    const outcomes: [string, FileOutcome | "none"][] = [];
    for (const one of removedFirst) {
      const outcome = one.reach === "none" ? "none" : await revertFile(context.workspace, one);
      outcomes.push([nameOf(one.path), outcome]);
    }
    return Object.fromEntries(outcomes);
  };
  return {
    ...place,
    context,
    run,
    /** Returns the name of a file as in the tree. */
    nameOf,
    /** Whether files are compared before and after the command. */
    isTracked: async (command: string) => {
      const prepared = await tool.prepare(tool.input.parse({ command }), context);
      return !changesNoFiles(prepared.permissions);
    },
    undo: (changes: readonly FileChange[]) => apply(planRevert(fileSteps(changes))),
    redo: (changes: readonly FileChange[]) => apply(planRevert(fileSteps(changes)).map(reverse)),
    /** Returns the contents, modes and links of all files, by path. */
    tree: () => readTree(place.cwd),
    [Symbol.asyncDispose]: async () => {
      await processes.endAll();
      await place[Symbol.asyncDispose]();
    },
  };
}

const rank = (revert: FileRevert) => (revert.reach !== "none" && revert.back === null ? 0 : 1);

function readTree(folder: string, prefix = ""): Record<string, string> {
  const tree: Record<string, string> = {};
  for (const name of readdirSync(folder).sort()) {
    const path = join(folder, name);
    const found = lstatSync(path);
    if (name === ".git") continue;
    if (found.isDirectory()) Object.assign(tree, readTree(path, `${prefix}${name}/`));
    else if (found.isSymbolicLink()) tree[prefix + name] = `-> ${readlinkSync(path)}`;
    else {
      const mode = (found.mode & 0o100) === 0 ? "" : "x ";
      tree[prefix + name] = mode + readFileSync(path).toString("latin1");
    }
  }
  return tree;
}
