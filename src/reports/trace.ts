import type { AssistantInfo, Message } from "../message/message.ts";
import type { Part, ToolPart } from "../message/part.ts";
import { startsTurn, firstWords, isCommandMessage } from "../conversation/checkpoints.ts";

/** Something that took time in a turn. Milliseconds, counted from the turn's beginning. */
export interface Span {
  readonly kind: "model" | "compact" | "tool" | "wait" | "retry";
  readonly what: string;
  readonly startMs: number;
  /** Undefined where it never ended. */
  readonly lengthMs: number | undefined;
  /** How it ended and what it used. */
  readonly note: string;
}

/** One turn as it went, from what is stored of it. */
export interface TurnTrace {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly began: number;
  readonly words: string;
  readonly agent: string;
  readonly lengthMs: number;
  /** Sums over the spans; tools and waits may run side by side. */
  readonly modelMs: number;
  readonly toolMs: number;
  readonly waitMs: number;
  /** US dollars. */
  readonly cost: number;
  /** Why the last model call of it ended. */
  readonly end: string;
  readonly spans: readonly Span[];
}

/** The turns of a session, oldest first. */
export async function traceOf(messages: AsyncIterable<Message>): Promise<TurnTrace[]> {
  const turns: Message[][] = [];
  for await (const message of messages) {
    if (isCommandMessage(message)) continue;
    if (startsTurn(message)) turns.push([message]);
    else turns.at(-1)?.push(message);
  }
  return turns.flatMap((turn) => traceTurn(turn) ?? []);
}

function traceTurn(messages: readonly Message[]): TurnTrace | undefined {
  const [first] = messages;
  if (first === undefined) return undefined;
  const { id, agent, time } = first.info;
  const began = time.created;
  const answers = messages.flatMap(({ info, parts }) => (info.role === "assistant" ? [{ info, parts }] : []));
  const spans = answers
    .flatMap(({ info, parts }) => spansOf(info, parts, began))
    .sort((one, other) => one.startMs - other.startMs);
  const sumOf = (...kinds: Span["kind"][]) =>
    spans.reduce((sum, { kind, lengthMs = 0 }) => (kinds.includes(kind) ? sum + lengthMs : sum), 0);
  const last = answers.findLast(({ info }) => info.summary !== true)?.info;
  return {
    id,
    began,
    words: firstWords(first),
    agent,
    lengthMs: Math.max(0, ...spans.map(({ startMs, lengthMs = 0 }) => startMs + lengthMs)),
    modelMs: sumOf("model", "compact"),
    toolMs: sumOf("tool"),
    waitMs: sumOf("wait", "retry"),
    cost: answers.reduce((sum, { info }) => sum + info.cost, 0),
    end: last?.error?.message ?? last?.finish ?? "not finished",
    spans,
  };
}

function spansOf(info: AssistantInfo, parts: readonly Part[], began: number): Span[] {
  return [
    modelSpan(info, parts, began),
    ...parts.flatMap((part) => {
      if (part.type === "tool") return callSpans(part, began);
      return part.type === "retry" ? [retrySpan(part, began)] : [];
    }),
  ];
}

/** A call starts when the model has written it whole, so that the last beginning of a part ends the stream. */
function modelSpan(info: AssistantInfo, parts: readonly Part[], began: number): Span {
  const { created, completed } = info.time;
  const hasCalls = parts.some(({ type }) => type === "tool");
  const times = parts.flatMap(timesOf);
  const end = hasCalls && times.length > 0 ? Math.max(...times) : completed;
  const firstMs = Math.min(...times) - created;
  const { input, output, reasoning, cache } = info.tokens;
  const notes = [
    Number.isFinite(firstMs) ? `first part after ${firstMs} ms` : undefined,
    `${input + cache.read + cache.write} in${cache.read > 0 ? ` (${cache.read} cached)` : ""}`,
    `${output + reasoning} out`,
    info.cost > 0 ? `$${info.cost.toFixed(4)}` : undefined,
    info.error?.message ?? info.finish ?? "cut off",
  ];
  return {
    kind: info.summary === true ? "compact" : "model",
    what: `${info.model.provider}/${info.model.model}`,
    startMs: created - began,
    lengthMs: end === undefined ? undefined : Math.max(0, end - created),
    note: notes.filter((note) => note !== undefined).join(", "),
  };
}

function timesOf(part: Part): number[] {
  if (part.type === "text" || part.type === "reasoning")
    return part.time === undefined ? [] : [part.time.start, part.time.end ?? part.time.start];
  if (part.type !== "tool" || !("time" in part.state) || part.state.time === undefined) return [];
  return [part.state.time.start - (part.decision?.waitedMs ?? 0)];
}

function callSpans({ tool, title, decision, state }: ToolPart, began: number): Span[] {
  const what = [tool, title].filter((text) => text !== undefined && text !== "").join(" ");
  const time = "time" in state ? state.time : undefined;
  if (time === undefined) return [];
  const waitedMs = decision?.waitedMs;
  const wait: Span[] =
    waitedMs === undefined
      ? []
      : [
          {
            kind: "wait",
            what: "for you",
            startMs: time.start - waitedMs - began,
            lengthMs: waitedMs,
            note: `${decision?.outcome}: ${what}`,
          },
        ];
  const note = state.status === "error" ? state.reason : state.status;
  const lengthMs = time.end === undefined ? undefined : time.end - time.start;
  return [...wait, { kind: "tool", what, startMs: time.start - began, lengthMs, note }];
}

function retrySpan(part: Part & { type: "retry" }, began: number): Span {
  const { attempt, attempts, error, delayMs, time } = part;
  return {
    kind: "retry",
    what: `after try ${attempt} of ${attempts}`,
    startMs: time - began,
    lengthMs: delayMs,
    note: error,
  };
}
