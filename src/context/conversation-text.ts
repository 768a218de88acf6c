import type { Backpressure } from "../base/async.ts";
import { newMessageId, newPartId } from "../message/ids.ts";
import type { AgentError, Message } from "../message/message.ts";
import type { Part } from "../message/part.ts";
import type { Model } from "../model/model.ts";
import { cutMiddle } from "../tool/output-limit.ts";
import { usableWindow } from "./context-budget.ts";
import { askModel, type ModelAnswer } from "./model-answer.ts";
import type { Project } from "../conversation/project.ts";

/** Characters of one call's output or input, or of one text of the model; the next is tried where all would not fit. */
const excerptLengths = [2_000, 1_000, 400, 100];
/** Share of a command's excerpt that shows its beginning; its end says how it went. */
const commandHeadShare = 1 / 4;
/** Characters of one text of the user (20k tokens); of a longer one the middle is left out. */
const requestLength = 80_000;
/** Share of the whole that texts of the user and reports may have before they are cut too. */
const wholeShare = 0.7;
/** Share of the steps in a shortened conversation that are its oldest. */
const oldStepsShare = 1 / 4;
/** Characters per token, low on purpose: the request must fit. */
const charactersPerToken = 2;
/** Characters that a conversation has in any case. */
const leastLength = 4_000;
/** Tokens of a window that is unknown. */
export const assumedWindow = 100_000;
/** How often the request is made smaller when the provider says that it is too long. */
const mostShrinks = 4;

export interface AboutConversation {
  /** The hidden agent whose prompt says what to do with it. */
  agent: string;
  model: Model;
  messages: readonly Message[];
  /** The text of the request that is being worked on, which is not among the messages. */
  request?: string | undefined;
  /** What the model is asked, after the conversation. */
  end: string;
  onText?: (text: string) => Backpressure;
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
  let length = Math.max(leastLength, window * charactersPerToken - asked.end.length);
  for (let shrinks = 0; ; shrinks++) {
    const text = `${conversationText(asked, length)}\n\n---\n\n${asked.end}`;
    const request = { model, system, messages: [asMessage(text, asked.agent)], tools: [], signal };
    const onText = shrinks === 0 ? asked.onText : undefined;
    const answer = await askModel({ models, retryPolicy, onText, ...(onRetry && { onRetry }) }, request);
    const isTooLong = answer.outcome === "failed" && answer.error.code === "context-length";
    if (!isTooLong || shrinks >= mostShrinks) return answer;
    length = Math.round(length / 2);
  }
}

/**
 * The conversation as plain text, at most so many characters long. What cannot be found out again stays whole as long
 * as it can: first outputs are cut, then steps in the middle are left out, then the longest texts are cut.
 */
export function conversationText(
  { messages, request }: Pick<AboutConversation, "messages" | "request">,
  length: number,
): string {
  const head = request === undefined ? "" : requestHead(request, length);
  const rest = length - head.length;
  for (const excerpt of excerptLengths) {
    const text = join(render(messages, { excerpt, whole: requestLength }));
    if (text.length <= rest) return head + text;
  }
  const shortest = excerptLengths.at(-1) ?? 0;
  const wholes = messages.flatMap((message) => message.parts.flatMap((part) => wholeLength(part, message)));
  const whole = Math.min(requestLength, longestEach(wholes, rest * wholeShare));
  const pieces = render(messages, { excerpt: shortest, whole });
  return head + cutMiddle(join(withoutMiddle(pieces, rest)), rest);
}

/** The length to which each text is cut so that all together have at most so many characters. */
function longestEach(lengths: readonly number[], total: number): number {
  let left = total;
  const rising = lengths.toSorted((one, other) => one - other);
  for (const [index, length] of rising.entries()) {
    const share = left / (rising.length - index);
    if (length > share) return Math.floor(share);
    left -= length;
  }
  return Number.POSITIVE_INFINITY;
}

/** Leaves out steps in the middle until the rest has at most so many characters. */
function withoutMiddle(pieces: readonly Piece[], length: number): Piece[] {
  const sizeOf = ({ text }: Piece) => text.length + separator.length;
  const wholes = pieces.filter(({ isWhole }) => isWhole);
  let left = length - wholes.reduce((sum, piece) => sum + sizeOf(piece), separator.length + leftOut.length);
  const kept = new Set(wholes);
  const take = (piece: Piece | undefined, most: number): boolean => {
    if (piece === undefined || sizeOf(piece) > most) return false;
    kept.add(piece);
    left -= sizeOf(piece);
    return true;
  };
  const steps = pieces.filter(({ isWhole }) => !isWhole);
  const oldShare = left * (1 - oldStepsShare);
  let first = 0;
  while (take(steps[first], left - oldShare)) first++;
  for (let last = steps.length - 1; last >= first && take(steps[last], left);) last--;
  const gap = pieces.findIndex((piece) => !kept.has(piece));
  return pieces.flatMap((piece, index) =>
    kept.has(piece) ? [piece] : index === gap ? [{ text: leftOut, isWhole: true }] : [],
  );
}

function requestHead(request: string, length: number): string {
  const text = cutMiddle(request, Math.min(requestLength, Math.round(length / 2)));
  return `The request being worked on:\n${text}\n\nThe conversation so far:\n\n`;
}

/** Characters of each text. */
interface Lengths {
  readonly excerpt: number;
  readonly whole: number;
}

/** One message as text. */
interface Piece {
  readonly text: string;
  /** Contains what cannot be found out again. */
  readonly isWhole: boolean;
}

const separator = "\n\n";
const leftOut = "[… steps left out …]";

function render(messages: readonly Message[], lengths: Lengths): Piece[] {
  return messages
    .map((message) => ({
      text: messageText(message, lengths),
      isWhole: message.parts.some((part) => isWhole(part, message)),
    }))
    .filter(({ text }) => text !== "");
}

const join = (pieces: readonly Piece[]): string => pieces.map(({ text }) => text).join(separator);

function messageText(message: Message, lengths: Lengths): string {
  const { info, parts } = message;
  const who = info.role === "user" ? "User" : info.summary ? "Earlier summary" : "Agent";
  const text = parts
    .map((part) => partText(part, isWhole(part, message) ? lengths.whole : lengths.excerpt))
    .filter((line) => line !== "")
    .join("\n");
  return text === "" ? "" : `${who}:\n${text}`;
}

/** The user's words, earlier summaries and the reports of sub-agents cannot be found out again. */
function isWhole(part: Part, { info, parts }: Message): boolean {
  if (part.type === "tool") return part.tool === "task";
  if (part.type === "compaction") return part.carried?.requests !== undefined;
  if (part.type !== "text" || part.ignored === true) return false;
  if (info.role === "assistant") return info.summary === true;
  // The text of a command is written by the program, and shown to the user as they called it.
  return part.synthetic !== true || parts.some((other) => other.type === "text" && other.ignored === true);
}

function wholeLength(part: Part, message: Message): number[] {
  return isWhole(part, message) ? [partText(part, requestLength).length] : [];
}

function partText(part: Part, excerpt: number): string {
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

function asMessage(text: string, agent: string): Message {
  const id = newMessageId();
  return {
    info: { id, sessionId: "ses_0", role: "user", time: { created: 0 }, agent },
    parts: [{ id: newPartId(), type: "text", text }],
  };
}
