import type {
  PermissionOption,
  RequestPermissionRequest,
  ToolCallContent,
} from "@agentclientprotocol/sdk/unstable";
import { z } from "zod";
import type { Answer, Question } from "../../permission/gate.ts";
import { excerpt } from "../../base/text/excerpt.ts";
import { showInvisible } from "../../base/text/invisible.ts";
import type { ApprovalScope } from "../../permission/approvals.ts";
import { connectPermission, type QuestionAnswers, sandboxPermission } from "../../permission/rule.ts";
import type { ClientRequests } from "./requester.ts";
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
const rejectWithReason = "reject_with_reason";
/** Maximum characters of all patterns in an option. */
const patternsLength = 400;
/** Maximum characters of the reason of a rejection. */
const reasonLimit = 10_000;

/** Asks for permission with the editor's prompt. Rejects if the answer is not one of the options. */
export async function requestPermission(
  requests: ClientRequests,
  question: Question,
  { features, paths }: { features: ClientFeatures; paths: ClientPaths },
  signal: AbortSignal,
): Promise<Answer> {
  const scopes = getScopes(question, features);
  const request = toRequest(question, scopes, features, paths);
  const reasonForm = getReasonForm(question, features);
  return toAnswer(await requests.permission(request, signal), { question, scopes, reasonForm });
}

/**
 * How a client with forms asks for the reason of a rejection: as an option of the question, or after each rejection in
 * clients that show one option per kind. Questions of the program, which no step made, take no reason.
 */
function getReasonForm({ step, answers }: Question, features: ClientFeatures): ReasonForm {
  if (!features.forms || features.feedback || step === undefined) return undefined;
  if (answers !== undefined) return "afterwards";
  return features.duplicateOptionKinds ? "option" : "afterwards";
}

type ReasonForm = "option" | "afterwards" | undefined;

const reasonSchema = z.looseObject({
  action: z.string(),
  content: z.looseObject({ reason: z.string().nullish() }).nullish(),
});

/** Asks for the reason of a rejection by form. Resolves to undefined if the user gives none. */
export async function requestReason(
  requests: ClientRequests,
  question: Question,
  features: ClientFeatures,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { sessionId, askedUnder = sessionId, callId, title, kind, answers } = question;
  const response = await requests.elicit(
    {
      sessionId: features.childWork === "sessions" ? sessionId : askedUnder,
      mode: "form",
      toolCallId: callId,
      message: answers?.why ?? `Why not? ${formatTitle(title, kind, features)}`,
      requestedSchema: {
        type: "object",
        properties: {
          reason: {
            type: "string",
            title: "Reason",
            description: "The model reads it and continues. Leave it empty to end the turn.",
          },
        },
      },
    },
    signal,
  );
  const parsed = reasonSchema.safeParse(response).data;
  return parsed?.action === "accept" ? toReason(parsed.content?.reason) : undefined;
}

function toReason(text: string | null | undefined): string | undefined {
  const trimmed = text?.trim() ?? "";
  return trimmed === "" ? undefined : excerpt(trimmed, reasonLimit);
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
      content: limitContent(createPreview(question, features)),
      ...(question.tool && { _meta: createMeta(question.tool, question) }),
    }),
    options: createOptions(question, scopes, getReasonForm(question, features)),
  };
}

/** Metadata for clients that answer automatically: the tool's name, and whether the model repeats the same call. */
function createMeta(tool: string, { permissions }: Question): Record<string, unknown> {
  const isLoop = permissions.some(({ permission }) => permission === "doom_loop");
  return { tool_name: limitName(tool), ...(isLoop && { loop: true }) };
}

function createOptions(
  question: Question,
  scopes: readonly ApprovalScope[],
  reasonForm: ReasonForm,
): PermissionOption[] {
  if (question.answers !== undefined) return createNamedOptions(question.answers, reasonForm);
  const always = scopes.map((scope) => createAlwaysOption(question, scope));
  return [
    { optionId: allowOnce, name: "Allow once", kind: "allow_once" },
    ...always,
    { optionId: rejectOnce, name: "Reject", kind: "reject_once" },
    ...(reasonForm === "option" ? [rejectWithReasonOption] : []),
  ];
}

function createNamedOptions(
  { allow, allowOther, reject, rejectWhy }: QuestionAnswers,
  reasonForm: ReasonForm,
): PermissionOption[] {
  return [
    { optionId: allowOnce, name: allow, kind: "allow_once" },
    ...(allowOther === undefined
      ? []
      : [{ optionId: allowAlways.session, name: allowOther, kind: "allow_always" } as const]),
    {
      optionId: rejectOnce,
      name: reasonForm === undefined ? reject : `${reject}${rejectWhy}`,
      kind: "reject_once",
    },
  ];
}

const rejectWithReasonOption: PermissionOption = {
  optionId: rejectWithReason,
  name: "Reject, and say why",
  kind: "reject_once",
};

function createAlwaysOption(
  { always: patterns, permissions, title }: Question,
  scope: ApprovalScope,
): PermissionOption {
  // The pattern of a server's tool contains a digest of its definition; the title names both.
  const tool = title.replace(/^@\S+: /, "");
  const isTool = (pattern: string) =>
    permissions.some(({ permission }) => pattern.startsWith(`${permission}@`));
  const names = patterns.map((pattern) => showInvisible(isTool(pattern) ? tool : pattern));
  const list = names.map((name) => `\`${name}\``).join(", ");
  const isFor = (name: string) => permissions.some(({ permission }) => permission === name);
  const what = isFor(connectPermission)
    ? `connections to ${list}`
    : `${list}${isFor(sandboxPermission) ? " outside the sandbox" : ""}`;
  return {
    optionId: allowAlways[scope],
    name: `Always allow ${what} in this ${scope}`,
    kind: "allow_always",
  };
}

function createPreview({ preview, reason }: Question, { deletedDiffs }: ClientFeatures): ToolCallContent[] {
  const diffs = (preview?.diffs ?? []).map(({ path, oldText, newText, isDeleted }): ToolCallContent => ({
    type: "diff",
    path,
    oldText,
    newText,
    ...(isDeleted === true && { ...(deletedDiffs && { deleted: true }), _meta: { kind: "delete" } }),
  }));
  const text = preview?.text === undefined ? [] : [textContent(fenced(showInvisible(preview.text)))];
  const markdown = preview?.markdown === undefined ? [] : [textContent(showInvisible(preview.markdown))];
  const why = reason === "" ? [] : [textContent(`Asked because ${showInvisible(reason)}.`)];
  return [...diffs, ...text, ...markdown, ...why];
}

/** Some clients send the reason of a rejection as `feedback`. The protocol has no field for it. */
const metaSchema = z
  .looseObject({ feedback: z.string().optional().catch(undefined) })
  .nullish()
  .catch(null);
const responseSchema = z.looseObject({
  outcome: z.looseObject({ outcome: z.string(), optionId: z.string().nullish(), _meta: metaSchema }),
  _meta: metaSchema,
});

interface OfferedAnswers {
  readonly question: Question;
  readonly scopes: readonly ApprovalScope[];
  readonly reasonForm: ReasonForm;
}

function toAnswer(response: unknown, { question, scopes, reasonForm }: OfferedAnswers): Answer {
  const parsed = responseSchema.safeParse(response);
  const outcome = parsed.data?.outcome;
  if (outcome?.outcome === "cancelled") return { reply: "cancelled" };
  const chosen = outcome?.outcome === "selected" ? outcome.optionId : undefined;
  if (chosen === allowOnce) return { reply: "once" };
  if (chosen === rejectOnce || (chosen === rejectWithReason && reasonForm === "option")) {
    const feedback = toReason(parsed.data?._meta?.feedback ?? outcome?._meta?.feedback);
    if (feedback !== undefined) return { reply: "reject", feedback };
    return { reply: "reject", mayAskWhy: chosen === rejectWithReason || reasonForm === "afterwards" };
  }
  if (chosen === allowAlways.session && question.answers?.allowOther !== undefined) return { reply: "other" };
  const scope = scopes.find((offered) => allowAlways[offered] === chosen);
  if (scope !== undefined) return { reply: "always", scope };
  throw new Error("The editor's answer is not one of the options.");
}
