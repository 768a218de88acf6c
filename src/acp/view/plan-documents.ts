import { pathToFileURL } from "node:url";
import type { SessionUpdate, ToolCallContent } from "@agentclientprotocol/sdk/unstable";
import { isPlanFile } from "../../agent/plan-files.ts";
import type { FileChange, ToolPart } from "../../message/part.ts";
import { cut } from "./card-limits.ts";

/** Maximum characters of a plan that is sent as Markdown. */
const planLength = 100_000;

/**
 * Creates plan updates (unstable) for the plan documents that a call wrote or deleted: as Markdown if the diffs have
 * their texts, otherwise as links to their files.
 */
export function createPlanUpdates(
  { state }: ToolPart,
  cwd: string,
  diffs: readonly ToolCallContent[],
): SessionUpdate[] {
  if (state.status !== "completed" && state.status !== "error") return [];
  const plans = (state.changes ?? []).filter(({ path }) => isPlanFile(path, cwd));
  return plans.map((plan) => toUpdate(plan, findText(diffs, plan)));
}

function findText(diffs: readonly ToolCallContent[], { path }: FileChange): string | undefined {
  for (const item of diffs) if (item.type === "diff" && item.path === path) return item.newText;
  return undefined;
}

function toUpdate({ path, operation }: FileChange, text: string | undefined): SessionUpdate {
  if (operation === "delete") return { sessionUpdate: "plan_removed", planId: path };
  if (text !== undefined) {
    const content = cut(text, planLength);
    return { sessionUpdate: "plan_update", plan: { type: "markdown", planId: path, content } };
  }
  const uri = pathToFileURL(path).href;
  return { sessionUpdate: "plan_update", plan: { type: "file", planId: path, uri } };
}
