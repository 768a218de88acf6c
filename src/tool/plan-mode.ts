import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import enterDescription from "../../prompts/tools/plan_enter.md";
import exitDescription from "../../prompts/tools/plan_exit.md";
import { PLAN_FILES } from "../agent/plan-files.ts";
import { findAgentAfterPlan, PLAN_AGENT } from "../agent/plan-mode.ts";
import { codeOf } from "../base/errors.ts";
import type { PermissionRequest } from "../permission/rule.ts";
import { formatPath } from "../workspace/paths.ts";
import { loadTextFile } from "./text-file.ts";
import { defineTool, ToolFailure } from "./tool.ts";
import type { Preview, ToolContext, ToolResult } from "./tool.ts";

const inputSchema = z.object({});

/** Characters of a plan shown with the permission request. */
const planPreviewLimit = 20_000;

export const planEnterTool = defineTool({
  name: "plan_enter",
  otherNames: ["enter_plan_mode"],
  description: enterDescription,
  input: inputSchema,
  kind: "switch_mode",
  concurrency: "exclusive",
  async prepare(_input, context) {
    if (context.agent === PLAN_AGENT)
      throw new ToolFailure(
        "Plan mode is on already. Go on planning, and call plan_exit when the plan is complete.",
      );
    if (!context.agents.names.includes(PLAN_AGENT))
      throw new ToolFailure("There is no plan mode here. Go on without it.");
    return {
      title: "Switch to plan mode?",
      locations: [],
      permissions: [createAgreement("plan_enter")],
      run: async () => {
        await context.agents.switchTo(PLAN_AGENT);
        return toSwitched(PLAN_AGENT);
      },
    };
  },
});

export const planExitTool = defineTool({
  name: "plan_exit",
  otherNames: ["exit_plan_mode", "exit_plan"],
  description: exitDescription,
  input: inputSchema,
  kind: "switch_mode",
  concurrency: "exclusive",
  async prepare(_input, context) {
    const to = findAgentAfterPlan(context.agents.names);
    if (context.agent === to)
      throw new ToolFailure("Plan mode is not on, so you may change files already. Go on with the work.");
    if (to === undefined)
      throw new ToolFailure("There is no other mode to go on in. End your turn with the plan as text.");
    const preview = await planPreview(context);
    const asks = context.agents.asksForEdits(to);
    const answers = {
      allow: asks ? "Build, ask for edits" : "Build",
      ...(asks && { allowOther: "Build, accept edits" }),
      reject: "Keep planning",
      rejectWhy: ", and say what to change",
      why: "What should be different in the plan?",
    };
    return {
      title: "Leave plan mode and start building?",
      locations: [],
      permissions: [createAgreement("plan_exit")],
      ...(preview && { preview }),
      answers,
      run: async ({ isOther }) => {
        await context.agents.switchTo(to, asks ? (isOther ? "accept" : "ask") : undefined);
        return toSwitched(to);
      },
    };
  },
});

function toSwitched(name: string): ToolResult {
  return { status: "completed", output: `The mode is ${name} from now on.` };
}

function createAgreement(permission: string): PermissionRequest {
  const confirm = "only you can say in which mode to go on";
  return { permission, subjects: [{ text: "*", confirm }], always: [] };
}

/** The newest plan file that this session has written or read. */
async function planPreview(context: ToolContext): Promise<Preview | undefined> {
  const path = await newestPlan(context);
  if (path === undefined) return undefined;
  const { text } = await loadTextFile(context.workspace, path);
  const more = text.length - planPreviewLimit;
  const shown = more > 0 ? `${text.slice(0, planPreviewLimit)}\n… (${more} characters more)` : text;
  return { markdown: `\`${formatPath(context.workspace.cwd, path)}\`\n\n${shown}` };
}

async function newestPlan({ workspace, seen }: ToolContext): Promise<string | undefined> {
  const folders = PLAN_FILES.map((pattern) => join(workspace.cwd, dirname(pattern)));
  const paths = (await Promise.all(folders.map(listMarkdown))).flat();
  const known = paths.filter((path) => seen.get(path) !== undefined);
  const dated = await Promise.all(known.map(async (path) => ({ path, time: (await stat(path)).mtimeMs })));
  return dated.sort((one, other) => other.time - one.time).at(0)?.path;
}

async function listMarkdown(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).filter((name) => name.endsWith(".md")).map((name) => join(folder, name));
  } catch (error) {
    // The folder does not exist.
    if (codeOf(error) === undefined) throw error;
    return [];
  }
}
