import type { Answer, AnswerCall } from "../answer.ts";
import type { UsageForm } from "../usage.ts";

export type Json = Readonly<Record<string, unknown>>;
/** A JSON value as the data of an event, or lines as they are. */
export type Frame = Json | string;
/** The deltas by which calls are sent. */
export type CallForm = (calls: readonly AnswerCall[]) => readonly Json[];
type Reason = "stop" | "tool_calls" | "length";

/** How one server streams chat completions: the order of fields, and how calls are cut. */
export interface ChatForm {
  readonly provider: string;
  /** Where the form was seen. */
  readonly source: string;
  /** What is around the choices; `usage` where it is reported. */
  readonly chunk: (choices: readonly Json[], usage?: Json) => Json;
  readonly choice?: (delta: Json, reason: string | null) => Json;
  /** Sent before anything else. */
  readonly before?: readonly Frame[];
  /** The first deltas, which say nothing. */
  readonly open?: readonly Json[];
  readonly thought?: (piece: string, at: number) => Json;
  /** Whether thoughts are text between tags, so that blanks around them mean nothing. */
  readonly hasTags?: boolean;
  /** Deltas between thoughts and the rest. */
  readonly afterThoughts?: readonly Json[];
  readonly text?: (piece: string) => Json;
  readonly calls?: CallForm;
  /** How many calls an answer can have; any number unless said. */
  readonly mostCalls?: number;
  /** Sent between the chunks. */
  readonly between?: Frame;
  /** Whether each chunk reports the usage so far. */
  readonly countsAlways?: boolean;
  readonly usage?: UsageForm;
  readonly close?: (form: ChatForm, reason: string | null) => readonly Frame[];
  /** The reasons by which it ends; null for none. */
  readonly reasons?: Partial<Record<Reason, string | null>>;
  /** False without `[DONE]`. */
  readonly done?: boolean;
  /** How an event is written. */
  readonly event?: (json: Json) => string;
  readonly lineEnd?: "\n" | "\r\n" | "\r";
}

const roleless = (content: string): Json => ({ content });
const plainChoice = (delta: Json, reason: string | null): Json => ({
  index: 0,
  delta,
  finish_reason: reason,
});

export function canWrite(form: ChatForm, answer: Answer): boolean {
  const { thought, calls, mostCalls = Infinity } = form;
  const fits = answer.calls.length <= mostCalls && (answer.calls.length === 0 || calls !== undefined);
  return fits && (answer.reasoning.length === 0 || thought !== undefined);
}

/** The bytes of an answer in a server's form. */
export function writeChat(form: ChatForm, answer: Answer): string {
  const { event = plainEvent, lineEnd = "\n" } = form;
  const frames = framesOf(form, answer);
  const text = frames.map((frame) => (typeof frame === "string" ? frame : event(frame))).join("");
  return lineEnd === "\n" ? text : text.replaceAll("\n", lineEnd);
}

const plainEvent = (json: Json): string => `data: ${JSON.stringify(json)}\n\n`;

function framesOf(form: ChatForm, answer: Answer): Frame[] {
  const { open = [], thought = roleless, afterThoughts = [], text = roleless, calls, before = [] } = form;
  const { choice = plainChoice, close = withUsageAfter, done = true, reasons = {}, between } = form;
  const reply: Reason = answer.end === "length" ? "length" : answer.calls.length > 0 ? "tool_calls" : "stop";
  const reason = reasons[reply];
  const deltas = [
    ...open,
    ...answer.reasoning.map(thought),
    ...(answer.reasoning.length > 0 ? afterThoughts : []),
    ...answer.text.map(text),
    ...(answer.calls.length > 0 ? (calls?.(answer.calls) ?? []) : []),
  ];
  const soFar = form.countsAlways === true ? { prompt_tokens: 1200, completion_tokens: 1 } : undefined;
  const chunks = deltas.flatMap((delta) => [
    form.chunk([choice(delta, null)], soFar),
    ...(between === undefined ? [] : [between]),
  ]);
  const closing = close(form, reason === undefined ? reply : reason);
  return [...before, ...chunks, ...closing, ...(done ? ["data: [DONE]\n\n"] : [])];
}

const choiceOf = ({ choice = plainChoice }: ChatForm, delta: Json, reason: string | null): Json =>
  choice(delta, reason);

/** A chunk with the reason, and one without choices that has the usage. */
export function withUsageAfter(form: ChatForm, reason: string | null): Frame[] {
  const last = form.chunk([choiceOf(form, {}, reason)]);
  return form.usage === undefined ? [last] : [last, form.chunk([], form.usage.counts)];
}

/** The usage in the chunk with the reason; `delta` is what that one says. */
export const withUsageIn =
  (delta: Json = {}) =>
  (form: ChatForm, reason: string | null): Frame[] => [
    form.chunk([choiceOf(form, delta, reason)], form.usage?.counts),
  ];

/** The reason twice, the second time with the usage. */
export const withReasonTwice =
  (delta: Json) =>
  (form: ChatForm, reason: string | null): Frame[] => [
    form.chunk([choiceOf(form, delta, reason)]),
    form.chunk([choiceOf(form, delta, reason)], form.usage?.counts),
  ];

/** The reason, then an empty delta without one that has the usage. */
export const withUsageInEmptyDelta =
  (delta: Json) =>
  (form: ChatForm, reason: string | null): Frame[] => [
    form.chunk([choiceOf(form, delta, reason)]),
    form.chunk([choiceOf(form, delta, null)], form.usage?.counts),
  ];

/** No chunk for the end but the usage. */
export const withUsageOnly = (form: ChatForm): Frame[] => [form.chunk([], form.usage?.counts)];
