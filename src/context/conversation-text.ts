import { newMessageId, newPartId } from "../message/ids.ts";
import type { AgentError, Message } from "../message/message.ts";
import type { Part } from "../message/part.ts";
import type { Model } from "../model/model.ts";
import { cutMiddle } from "../tool/output-limit.ts";
import { getUsableWindow } from "./context-budget.ts";
import { askModel, type ModelAnswer } from "./model-answer.ts";
import type { Project } from "../conversation/project.ts";

/** Length limits in characters for call inputs, outputs and model texts, tried in order until all fit. */
const excerptLengths = [2_000, 1_000, 400, 100];
/** Share of a command's excerpt for its beginning; its end usually shows the result. */
const commandHeadShare = 1 / 4;
/** Maximum characters of a user message (20k tokens); longer ones are shortened in the middle. */
const requestLength = 80_000;
/** Share of the text that user messages and reports may fill before they are shortened. */
const wholeShare = 0.7;
/** Share of the remaining steps that are the oldest ones. */
const oldStepsShare = 1 / 4;
/** A low estimate, so that the request fits. */
const charactersPerToken = 2;
/** Minimum length of the conversation in characters. */
const minLength = 4_000;
/** Tokens assumed for an unknown window. */
export const assumedWindow = 100_000;
/** How often the request is shortened if the provider says that it is too long. */
const maxShrinks = 4;

export interface ConversationQuestion {
  /** The hidden agent whose prompt is used. */
  agent: string;
  model: Model;
  messages: readonly Message[];
  /** The current request, if it is not among the messages. */
  request?: string | undefined;
  /** The question after the conversation. */
  end: string;
  onText?: (text: string) => void;
  /** Resolves when the consumer of the text can receive more. */
  waitUntilReady?: () => Promise<void>;
  onRetry?: (error: AgentError) => Promise<void>;
}

/** Asks a model about a conversation, which is sent as text that fits its window. */
export async function askAboutConversation(
  { models, agents, config, retryPolicy }: Project,
  question: ConversationQuestion,
  signal: AbortSignal,
): Promise<ModelAnswer> {
  const { model, onRetry, waitUntilReady } = question;
  const window = getUsableWindow(model, config) ?? assumedWindow;
  const system = [agents.get(question.agent)?.prompt ?? ""].filter((text) => text !== "");
  let length = Math.max(minLength, window * charactersPerToken - question.end.length);
  for (let shrinks = 0; ; shrinks++) {
    const text = `${renderConversation(question, length)}\n\n---\n\n${question.end}`;
    const request = {
      model,
      system,
      messages: [createUserMessage(text, question)],
      tools: [],
      signal,
      ...(waitUntilReady && { waitUntilReady }),
    };
    const onText = shrinks === 0 ? question.onText : undefined;
    const answer = await askModel({ models, retryPolicy, onText, ...(onRetry && { onRetry }) }, request);
    const isTooLong = answer.outcome === "failed" && answer.error.code === "context-length";
    if (!isTooLong || shrinks >= maxShrinks) return answer;
    length = Math.round(length / 2);
  }
}

/**
 * Renders the conversation as plain text of limited length. Shortens outputs first, then omits steps in the
 * middle, and shortens user messages and reports last, because they cannot be recovered.
 */
export function renderConversation(
  { messages, request }: Pick<ConversationQuestion, "messages" | "request">,
  length: number,
): string {
  const head = request === undefined ? "" : renderRequest(request, length);
  const rest = length - head.length;
  for (const excerpt of excerptLengths) {
    const text = join(render(messages, { excerpt, whole: requestLength }));
    if (text.length <= rest) return head + text;
  }
  const shortest = excerptLengths.at(-1) ?? 0;
  const wholes = messages.flatMap((message) =>
    message.parts.flatMap((part) => getWholeLength(part, message)),
  );
  const whole = Math.min(requestLength, computeLengthLimit(wholes, rest * wholeShare));
  const pieces = render(messages, { excerpt: shortest, whole });
  return head + cutMiddle(join(omitMiddle(pieces, rest)), rest);
}

/** Computes the length limit per text so that all texts together fit the total. */
function computeLengthLimit(lengths: readonly number[], total: number): number {
  let left = total;
  const rising = lengths.toSorted((one, other) => one - other);
  for (const [index, length] of rising.entries()) {
    const share = left / (rising.length - index);
    if (length > share) return Math.floor(share);
    left -= length;
  }
  return Number.POSITIVE_INFINITY;
}

/** Omits steps in the middle until the rest fits. */
function omitMiddle(pieces: readonly MessageText[], length: number): MessageText[] {
  const sizeOf = ({ text }: MessageText) => text.length + separator.length;
  const wholes = pieces.filter(({ isWhole }) => isWhole);
  let left =
    length - wholes.reduce((sum, piece) => sum + sizeOf(piece), separator.length + omittedNote.length);
  const included = new Set(wholes);
  const take = (piece: MessageText | undefined, most: number): boolean => {
    if (piece === undefined || sizeOf(piece) > most) return false;
    included.add(piece);
    left -= sizeOf(piece);
    return true;
  };
  const steps = pieces.filter(({ isWhole }) => !isWhole);
  const oldShare = left * (1 - oldStepsShare);
  let first = 0;
  while (take(steps[first], left - oldShare)) first++;
  for (let last = steps.length - 1; last >= first && take(steps[last], left);) last--;
  const gap = pieces.findIndex((piece) => !included.has(piece));
  return pieces.flatMap((piece, index) =>
    included.has(piece) ? [piece] : index === gap ? [{ text: omittedNote, isWhole: true }] : [],
  );
}

function renderRequest(request: string, length: number): string {
  const text = cutMiddle(request, Math.min(requestLength, Math.round(length / 2)));
  return `The request being worked on:\n${text}\n\nThe conversation so far:\n\n`;
}

/** Length limits in characters. */
interface Lengths {
  readonly excerpt: number;
  readonly whole: number;
}

/** A message as text. */
interface MessageText {
  readonly text: string;
  /** Contains text that cannot be recovered. */
  readonly isWhole: boolean;
}

const separator = "\n\n";
const omittedNote = "[… steps left out …]";

function render(messages: readonly Message[], lengths: Lengths): MessageText[] {
  return messages
    .map((message) => ({
      text: renderMessage(message, lengths),
      isWhole: message.parts.some((part) => isWhole(part, message)),
    }))
    .filter(({ text }) => text !== "");
}

const join = (pieces: readonly MessageText[]): string => pieces.map(({ text }) => text).join(separator);

function renderMessage(message: Message, lengths: Lengths): string {
  const { info, parts } = message;
  const who = info.role === "user" ? "User" : info.summary ? "Earlier summary" : "Agent";
  const text = parts
    .map((part) => renderPart(part, isWhole(part, message) ? lengths.whole : lengths.excerpt))
    .filter((line) => line !== "")
    .join("\n");
  return text === "" ? "" : `${who}:\n${text}`;
}

/** Whether the text cannot be recovered: user messages, earlier summaries and reports of subagents. */
function isWhole(part: Part, { info, parts }: Message): boolean {
  if (part.type === "tool") return part.tool === "task";
  if (part.type === "compaction") return part.carried?.requests !== undefined;
  if (part.type !== "text" || part.ignored === true) return false;
  if (info.role === "assistant") return info.summary === true;
  // A command's text comes from the program; the user sees the command itself.
  return part.synthetic !== true || parts.some((other) => other.type === "text" && other.ignored === true);
}

function getWholeLength(part: Part, message: Message): number[] {
  return isWhole(part, message) ? [renderPart(part, requestLength).length] : [];
}

function renderPart(part: Part, excerpt: number): string {
  switch (part.type) {
    case "text":
      return part.ignored ? "" : cutMiddle(part.text, excerpt);
    case "file":
      return `[attached ${part.filename ?? part.mime}]`;
    case "compaction":
      return part.carried?.requests === undefined
        ? ""
        : cutMiddle(part.carried.requests.join("\n\n"), excerpt);
    case "tool": {
      const { state } = part;
      const result =
        state.status === "completed"
          ? state.output
          : state.status === "error"
            ? `failed: ${state.error}`
            : "";
      const headShare = part.kind === "execute" ? commandHeadShare : 1;
      const input = cutMiddle(JSON.stringify(state.input ?? {}), excerpt, 1);
      return `[${part.tool} ${input}]\n${cutMiddle(result, excerpt, headShare)}`;
    }
    default:
      return "";
  }
}

/** Creates a user message that is not stored. */
export function createUserMessage(
  text: string,
  { agent, synthetic = false }: { agent: string; synthetic?: boolean },
): Message {
  const id = newMessageId();
  return {
    info: { id, sessionId: "ses_0", role: "user", time: { created: 0 }, agent },
    parts: [{ id: newPartId(), type: "text", text, synthetic }],
  };
}
