import type {
  PermissionOption,
  RequestPermissionRequest,
  ToolCallContent,
} from "@agentclientprotocol/sdk/unstable";
import { z } from "zod";
import type { Answer, Question } from "../../permission/gate.ts";
import { showInvisible } from "../../base/text/invisible.ts";
import type { ApprovalScope } from "../../permission/approvals.ts";
import type { ClientRequests } from "./client-requests.ts";
import type { ClientFeatures } from "../client-capabilities.ts";
import type { ClientPaths } from "../client-paths.ts";
import { formatTitle } from "../view/titles.ts";
import { textContent } from "../view/tool-calls.ts";
import { limitContent, limitInput, limitName } from "../view/card-limits.ts";
import { fenced } from "../../base/text/fence.ts";

const allowOnce = "allow_once";
/** Option ids by scope. */
const allowAlways: Readonly<Record<ApprovalScope, string>> = {
  session: "allow_always",
  project: "allow_always_project",
};
const rejectOnce = "reject_once";
/** Maximum characters of all patterns in an option. */
const patternsLength = 400;

/** Asks for permission with the editor's prompt. Rejects if the answer is not one of the options. */
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

/** Clients that show one option per kind get the shorter scope. Patterns too long to read cannot be always allowed. */
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
    // A client without child sessions would never answer a request for one.
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

/** Metadata for clients that answer automatically: the tool's name, and whether the model repeats the same call. */
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
  throw new Error("The editor's answer is not one of the options.");
}
