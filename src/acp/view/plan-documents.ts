import { pathToFileURL } from "node:url";
import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { isPlanFile } from "../../agent/plan-files.ts";
import type { FileChange, ToolPart } from "../../message/part.ts";

/** Creates plan updates (unstable) for the plan documents that a call wrote or deleted. */
export function createPlanUpdates({ state }: ToolPart, cwd: string): SessionUpdate[] {
  if (state.status !== "completed" && state.status !== "error") return [];
  return (state.changes ?? []).filter(({ path }) => isPlanFile(path, cwd)).map(toUpdate);
}

function toUpdate({ path, operation }: FileChange): SessionUpdate {
  if (operation === "delete") return { sessionUpdate: "plan_removed", planId: path };
  const uri = pathToFileURL(path).href;
  return { sessionUpdate: "plan_update", plan: { type: "file", planId: path, uri } };
}
