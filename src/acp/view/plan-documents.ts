import { dirname, relative, sep } from "node:path";
import { pathToFileURL } from "node:url";
import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { PLAN_FILES } from "../../agent/built-in.ts";
import type { FileChange, ToolPart } from "../../message/part.ts";

const planFolders = new Set(PLAN_FILES.map((pattern) => dirname(pattern)));

/** Creates plan updates (unstable) for the plan documents that a call wrote or deleted. */
export function createPlanUpdates({ state }: ToolPart, cwd: string): SessionUpdate[] {
  if (state.status !== "completed" && state.status !== "error") return [];
  return (state.changes ?? []).filter(({ path }) => isPlan(path, cwd)).map(toUpdate);
}

function toUpdate({ path, operation }: FileChange): SessionUpdate {
  if (operation === "delete") return { sessionUpdate: "plan_removed", planId: path };
  const uri = pathToFileURL(path).href;
  return { sessionUpdate: "plan_update", plan: { type: "file", planId: path, uri } };
}

function isPlan(path: string, cwd: string): boolean {
  const place = relative(cwd, path).split(sep).join("/");
  return place.endsWith(".md") && planFolders.has(dirname(place));
}
