import type {
  AgentContext,
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
  ToolCallContent,
} from "@agentclientprotocol/sdk";
import type { Answer, Question } from "../permission/gate.ts";
import { textContent } from "./tool-calls.ts";
import { fenced } from "./fence.ts";

const allowOnce = "allow_once";
const allowAlways = "allow_always";
const rejectOnce = "reject_once";

/** Asks through the editor's own prompt. Whatever does not clearly approve is a no. */
export async function askClient(
  client: AgentContext,
  question: Question,
  signal: AbortSignal,
): Promise<Answer> {
  const options = { cancellationSignal: signal, stopWaitingOnCancel: true } as const;
  const response = await client.request("session/request_permission", toRequest(question), options);
  return toAnswer(response, question);
}

function toRequest(question: Question): RequestPermissionRequest {
  return {
    sessionId: question.sessionId,
    toolCall: {
      toolCallId: question.callId,
      title: question.title,
      kind: question.kind,
      status: "pending",
      rawInput: question.input,
      locations: [...question.locations],
      content: previewContent(question),
    },
    options: optionsFor(question),
  };
}

function optionsFor(question: Question): PermissionOption[] {
  const always = question.always.length === 0 ? [] : [alwaysOption(question.always)];
  return [
    { optionId: allowOnce, name: "Allow once", kind: "allow_once" },
    ...always,
    { optionId: rejectOnce, name: "Reject", kind: "reject_once" },
  ];
}

function alwaysOption(patterns: readonly string[]): PermissionOption {
  const list = patterns.map((pattern) => `\`${pattern}\``).join(", ");
  return { optionId: allowAlways, name: `Always allow ${list} in this session`, kind: "allow_always" };
}

function previewContent({ preview }: Question): ToolCallContent[] {
  const diffs = (preview?.diffs ?? []).map(({ path, oldText, newText }): ToolCallContent => ({
    type: "diff",
    path,
    oldText,
    newText,
  }));
  return preview?.text === undefined ? diffs : [...diffs, textContent(fenced(preview.text))];
}

function toAnswer({ outcome }: RequestPermissionResponse, question: Question): Answer {
  if (outcome.outcome === "cancelled") return { reply: "cancelled" };
  if (outcome.outcome !== "selected") return { reply: "reject" };
  if (outcome.optionId === allowOnce) return { reply: "once" };
  if (outcome.optionId === allowAlways && question.always.length > 0)
    return { reply: "always", scope: "session" };
  return { reply: "reject" };
}
