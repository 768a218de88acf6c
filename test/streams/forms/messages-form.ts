import type { Answer, AnswerCall } from "../answer.ts";
import type { Frame, Json } from "./chat-form.ts";
import { eventText } from "./responses-form.ts";
import type { MessagesUsage } from "../usage.ts";

/** The events of one content block. */
export type WriteBlock<T> = (given: T, index: number) => readonly Json[];
type Reason = "end_turn" | "tool_use" | "max_tokens";

/** How one server streams the Messages API: which fields come in which order, and how blocks are cut. */
export interface MessagesForm {
  readonly provider: string;
  /** Where the form was seen. */
  readonly source: string;
  readonly usage: MessagesUsage;
  /** The message of `message_start` around its usage. */
  readonly message?: (usage: Json) => Json;
  /** How often `message_start` is sent. */
  readonly starts?: number;
  /** More fields of the delta at the end. */
  readonly end?: Json;
  /** More fields of `message_delta`. */
  readonly endEvent?: Json;
  readonly stop?: Json;
  /** Blocks that were not asked for, before the others. */
  readonly first?: readonly WriteBlock<undefined>[];
  readonly thinking?: WriteBlock<readonly string[]>;
  readonly text?: WriteBlock<readonly string[]>;
  readonly call?: WriteBlock<AnswerCall>;
  /** Puts the events of blocks in order; one block after the other unless given. */
  readonly arrange?: (blocks: readonly (readonly Json[])[]) => readonly Json[];
  readonly before?: readonly Frame[];
  /** Sent after an event; undefined for nothing. */
  readonly after?: (event: Json, number: number) => Frame | undefined;
  /** Puts the fields of an event in the server's order. */
  readonly order?: (event: Json) => Json;
  /** False without `event:` lines. */
  readonly namesEvents?: boolean;
  /** Whether `[DONE]` ends the stream. */
  readonly done?: boolean;
  readonly lineEnd?: "\n" | "\r\n" | "\r";
}

export function canWriteMessages(form: MessagesForm, answer: Answer): boolean {
  return answer.reasoning.length === 0 || form.thinking !== undefined;
}

/** The bytes of an answer in a server's form. */
export function writeMessages(form: MessagesForm, answer: Answer): string {
  const { order = (event) => event, namesEvents = true, lineEnd = "\n" } = form;
  const { before = [], after = () => undefined, done = false } = form;
  const write = (frame: Frame): string => {
    if (typeof frame === "string") return frame;
    return eventText(order(frame), namesEvents ? String(frame.type) : undefined);
  };
  const frames = eventsOf(form, answer).flatMap((event, number) => {
    const next = after(event, number);
    return next === undefined ? [event] : [event, next];
  });
  const text = [...[...before, ...frames].map(write), ...(done ? ["data: [DONE]\n\n"] : [])].join("");
  return lineEnd === "\n" ? text : text.replaceAll("\n", lineEnd);
}

function eventsOf(form: MessagesForm, answer: Answer): readonly Json[] {
  const { usage, message = anthropicMessage, starts = 1, end = { stop_sequence: null } } = form;
  const { arrange = (blocks) => blocks.flat(), endEvent = {}, stop = {} } = form;
  const reason: Reason =
    answer.end === "length" ? "max_tokens" : answer.calls.length > 0 ? "tool_use" : "end_turn";
  const start = { type: "message_start", message: message(usage.start) };
  return [
    ...Array.from({ length: starts }, () => start),
    ...arrange(blocksOf(form, answer)),
    { type: "message_delta", delta: { stop_reason: reason, ...end }, usage: usage.end, ...endEvent },
    { type: "message_stop", ...stop },
  ];
}

function blocksOf(form: MessagesForm, { reasoning, text, calls }: Answer): (readonly Json[])[] {
  const { first = [], text: writeText = textBlock(), call = callBlock() } = form;
  const written: ((index: number) => readonly Json[])[] = [
    ...first.map((write) => (index: number) => write(undefined, index)),
    ...(reasoning.length === 0 ? [] : [(index: number) => form.thinking?.(reasoning, index) ?? []]),
    ...(text.length === 0 ? [] : [(index: number) => writeText(text, index)]),
    ...calls.map((one) => (index: number) => call(one, index)),
  ];
  return written.map((write, index) => write(index));
}

/** What Anthropic's message has, from 2025 on. */
export const anthropicMessage = (usage: Json): Json => ({
  model: "m",
  id: "msg_1",
  type: "message",
  role: "assistant",
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage,
});

const start = (index: number, content_block: Json): Json => ({
  type: "content_block_start",
  index,
  content_block,
});
const delta = (index: number, inner: Json): Json => ({ type: "content_block_delta", index, delta: inner });
const stop = (index: number): Json => ({ type: "content_block_stop", index });

/** A text block; `deltas` come before the text's. */
export const textBlock =
  ({ begun = {}, deltas = [] }: { begun?: Json; deltas?: readonly Json[] } = {}): WriteBlock<
    readonly string[]
  > =>
  (pieces, index) => [
    start(index, { ...begun, type: "text", text: "" }),
    ...deltas.map((one) => delta(index, one)),
    ...pieces.map((text) => delta(index, { type: "text_delta", text })),
    stop(index),
  ];

/** A thinking block; `last` are its deltas after the thoughts. */
export const thinkingBlock =
  ({ begun = { signature: "" }, last = signed }: { begun?: Json; last?: readonly Json[] } = {}): WriteBlock<
    readonly string[]
  > =>
  (pieces, index) => [
    start(index, { type: "thinking", thinking: "", ...begun }),
    ...pieces.map((thinking) => delta(index, { type: "thinking_delta", thinking })),
    ...last.map((one) => delta(index, one)),
    stop(index),
  ];
const signed: readonly Json[] = [{ type: "signature_delta", signature: "ErUBCkYIBxgCIkA=" }];
/** An empty thought comes before the signature. */
export const signedAfterNothing: readonly Json[] = [{ type: "thinking_delta", thinking: "" }, ...signed];

interface CallManner {
  /** More fields of the block. */
  readonly begun?: Json;
  /** The pieces of the input; an empty one and the pieces unless given. */
  readonly deltas?: (call: AnswerCall) => readonly string[];
  /** The input of the block itself. */
  readonly input?: (call: AnswerCall) => Json;
}

/** A tool_use block. */
export const callBlock =
  ({
    begun = {},
    deltas = usualPieces,
    input = () => ({ input: {} }),
  }: CallManner = {}): WriteBlock<AnswerCall> =>
  (call, index) => [
    start(index, { type: "tool_use", id: call.id, name: call.tool, ...input(call), ...begun }),
    ...deltas(call).map((partial_json) => delta(index, { type: "input_json_delta", partial_json })),
    stop(index),
  ];

/** The input of a call without parameters is never sent. */
const usualPieces = ({ pieces }: AnswerCall): readonly string[] =>
  pieces.join("") === "{}" ? [""] : ["", ...pieces];

/** A block that comes whole. */
export const wholeBlock =
  (content_block: Json): WriteBlock<undefined> =>
  (_, index) => [start(index, content_block), stop(index)];

/** A block with deltas. */
export const streamedBlock =
  (content_block: Json, ...deltas: readonly Json[]): WriteBlock<undefined> =>
  (_, index) => [start(index, content_block), ...deltas.map((one) => delta(index, one)), stop(index)];

/** All blocks begin, then their events come in turns. */
export const blocksInTurns = (blocks: readonly (readonly Json[])[]): Json[] => {
  const rounds = Math.max(0, ...blocks.map((events) => events.length));
  return Array.from({ length: rounds }, (_, round) =>
    blocks.flatMap((events) => events.slice(round, round + 1)),
  ).flat();
};
