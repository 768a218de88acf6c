import type { Room } from "../base/async.ts";
import { newMessageId, newPartId } from "../message/ids.ts";
import type { AgentError, Message } from "../message/message.ts";
import type { Part } from "../message/part.ts";
import type { Model } from "../model/model.ts";
import { usableWindow } from "./context-budget.ts";
import { askModel, type ModelAnswer } from "./model-answer.ts";
import type { Project } from "./project.ts";

/** Characters of one call's output or of one text that a model is told of. */
const excerptLength = 2_000;
/** Characters per token, low on purpose: the request must fit. */
const charactersPerToken = 2;
/** Tokens of a window that is unknown. */
export const assumedWindow = 100_000;
/** How often the request is made smaller when the provider says that it is too long. */
const mostShrinks = 4;

export interface AboutConversation {
  /** The hidden agent whose prompt says what to do with it. */
  agent: string;
  model: Model;
  messages: readonly Message[];
  /** Stands behind the conversation. */
  end: string;
  onText?: (text: string) => Room;
  onRetry?: (error: AgentError) => Promise<void>;
}

/** Asks a model about a conversation, which it is given as a text that fits. */
export async function askAboutConversation(
  { models, agents, config, retryPolicy }: Project,
  asked: AboutConversation,
  signal: AbortSignal,
): Promise<ModelAnswer> {
  const { model, onRetry } = asked;
  const window = usableWindow(model, config) ?? assumedWindow;
  const system = [agents.get(asked.agent)?.prompt ?? ""].filter((text) => text !== "");
  let length = Math.max(4_000, (window - outputOf(model)) * charactersPerToken);
  for (let shrinks = 0; ; shrinks++) {
    const text = `${conversationText(asked.messages, length)}\n\n---\n\n${asked.end}`;
    const request = { model, system, messages: [asMessage(text, asked.agent)], tools: [], signal };
    const onText = shrinks === 0 ? asked.onText : undefined;
    const answer = await askModel({ models, retryPolicy, onText, ...(onRetry && { onRetry }) }, request);
    const isTooLong = answer.outcome === "failed" && answer.error.code === "context-length";
    if (!isTooLong || shrinks >= mostShrinks) return answer;
    length = Math.round(length / 2);
  }
}

function outputOf(model: Model): number {
  return Math.min(model.limit.output ?? 4_000, 8_000);
}

/** The conversation as plain text, its middle left out where it is longer than the model could read. */
function conversationText(messages: readonly Message[], length: number): string {
  const text = messages
    .map(messageText)
    .filter((part) => part !== "")
    .join("\n\n");
  if (text.length <= length) return text;
  const head = Math.round(length / 4);
  return `${text.slice(0, head)}\n\n[… ${text.length - length} characters left out …]\n\n${text.slice(head - length)}`;
}

function messageText({ info, parts }: Message): string {
  const who = info.role === "user" ? "Person" : info.summary ? "Earlier summary" : "Agent";
  const text = parts
    .map((part) => partText(part, info.role === "assistant" && info.summary === true))
    .filter((line) => line !== "")
    .join("\n");
  return text === "" ? "" : `${who}:\n${text}`;
}

function partText(part: Part, whole: boolean): string {
  switch (part.type) {
    case "text":
      return part.ignored ? "" : whole ? part.text : excerpt(part.text);
    case "file":
      return `[attached ${part.filename ?? part.mime}]`;
    case "tool": {
      const { state } = part;
      const result =
        state.status === "completed"
          ? state.output
          : state.status === "error"
            ? `failed: ${state.error}`
            : "";
      return `[${part.tool} ${excerpt(JSON.stringify(state.input ?? {}))}]\n${excerpt(result)}`;
    }
    default:
      return "";
  }
}

function excerpt(text: string): string {
  if (text.length <= excerptLength) return text;
  return `${text.slice(0, excerptLength)} [… ${text.length - excerptLength} characters]`;
}

function asMessage(text: string, agent: string): Message {
  const id = newMessageId();
  return {
    info: { id, sessionId: "ses_0", role: "user", time: { created: 0 }, agent },
    parts: [{ id: newPartId(), type: "text", text }],
  };
}
