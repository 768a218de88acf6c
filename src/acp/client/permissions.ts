import type {
  PermissionOption,
  RequestPermissionRequest,
  ToolCallContent,
} from "@agentclientprotocol/sdk/unstable";
import { z } from "zod";
import type { Answer, Question } from "../../permission/gate.ts";
import { showInvisible } from "../../permission/invisible.ts";
import type { ApprovalScope } from "../../permission/approvals.ts";
import type { ClientRequests } from "./client-requests.ts";
import type { ClientFeatures } from "../client-capabilities.ts";
import type { ClientPaths } from "../client-paths.ts";
import { formatTitle } from "../view/titles.ts";
import { textContent } from "../view/tool-calls.ts";
import { limitContent, limitInput, limitName } from "../view/card-limits.ts";
import { fenced } from "../../base/text/fence.ts";

const allowOnce = "allow_once";
/** By how long it holds. */
const allowAlways: Readonly<Record<ApprovalScope, string>> = {
  session: "allow_always",
  project: "allow_always_project",
};
const rejectOnce = "reject_once";
/** Characters of all patterns that an option names. */
const patternsLength = 400;

/** Asks through the editor's own prompt. Rejects where the answer is none of those offered. */
export async function requestPermission(
  requests: ClientRequests,
  question: Question,
  { features, paths }: { features: ClientFeatures; paths: ClientPaths },
  signal: AbortSignal,
): Promise<Answer> {
  const scopes = getScopes(question, features);
  const request = toRequest(question, scopes, features, paths);
  return toAnswer(await requests.permission(request, signal), scopes);
}

/** A client that keeps one option of a kind is offered the shorter time. What nobody can read is allowed once only. */
function getScopes({ always, scopes }: Question, features: ClientFeatures): readonly ApprovalScope[] {
  if (always.length === 0 || always.join(", ").length > patternsLength) return [];
  return features.duplicateOptionKinds ? scopes : scopes.slice(0, 1);
}

function toRequest(
  question: Question,
  scopes: readonly ApprovalScope[],
  features: ClientFeatures,
  paths: ClientPaths,
): RequestPermissionRequest {
  const { sessionId, askedUnder = sessionId } = question;
  return {
    // A client that does not know child sessions would never answer for one.
    sessionId: features.childWork === "sessions" ? sessionId : askedUnder,
    toolCall: paths.mapCall({
      toolCallId: question.callId,
      title: formatTitle(question.title, question.kind, features),
      kind: question.kind,
      status: "pending",
      rawInput: limitInput(question.input),
      locations: [...question.locations],
      content: limitContent(createPreview(question)),
      ...(question.tool && { _meta: createMeta(question.tool, question) }),
    }),
    options: createOptions(question, scopes),
  };
}

/** For clients that answer by themselves: which tool it is, and whether the model repeats itself. */
function createMeta(tool: string, { permissions }: Question): Record<string, unknown> {
  const isLoop = permissions.some(({ permission }) => permission === "doom_loop");
  return { tool_name: limitName(tool), ...(isLoop && { loop: true }) };
}

function createOptions({ always: patterns }: Question, scopes: readonly ApprovalScope[]): PermissionOption[] {
  const always = scopes.map((scope) => createAlwaysOption(patterns, scope));
  return [
    { optionId: allowOnce, name: "Allow once", kind: "allow_once" },
    ...always,
    { optionId: rejectOnce, name: "Reject", kind: "reject_once" },
  ];
}

function createAlwaysOption(patterns: readonly string[], scope: ApprovalScope): PermissionOption {
  const list = patterns.map((pattern) => `\`${showInvisible(pattern)}\``).join(", ");
  return {
    optionId: allowAlways[scope],
    name: `Always allow ${list} in this ${scope}`,
    kind: "allow_always",
  };
}

function createPreview({ preview, reason }: Question): ToolCallContent[] {
  const diffs = (preview?.diffs ?? []).map(({ path, oldText, newText }): ToolCallContent => ({
    type: "diff",
    path,
    oldText,
    newText,
  }));
  const text = preview?.text === undefined ? [] : [textContent(fenced(showInvisible(preview.text)))];
  const why = reason === "" ? [] : [textContent(`Asked because ${showInvisible(reason)}.`)];
  return [...diffs, ...text, ...why];
}

const responseSchema = z.looseObject({
  outcome: z.looseObject({ outcome: z.string(), optionId: z.string().nullish() }),
});

function toAnswer(response: unknown, scopes: readonly ApprovalScope[]): Answer {
  const parsed = responseSchema.safeParse(response);
  const outcome = parsed.data?.outcome;
  if (outcome?.outcome === "cancelled") return { reply: "cancelled" };
  const chosen = outcome?.outcome === "selected" ? outcome.optionId : undefined;
  if (chosen === allowOnce) return { reply: "once" };
  if (chosen === rejectOnce) return { reply: "reject" };
  const scope = scopes.find((offered) => allowAlways[offered] === chosen);
  if (scope !== undefined) return { reply: "always", scope };
  throw new Error("The editor's answer was none of those offered.");
}
