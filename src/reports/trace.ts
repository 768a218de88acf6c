import type { AssistantInfo, Message, SentRequest } from "../message/message.ts";
import type { Part, ToolPart } from "../message/part.ts";
import { startsTurn } from "../message/starts-turn.ts";
import { nameCall } from "../tool/presentation.ts";
import { firstWords, isCommandMessage } from "../conversation/checkpoints.ts";

/** A timed step of a turn. Milliseconds since the start of the turn. */
export interface Span {
  readonly kind: "model" | "compact" | "tool" | "wait" | "retry";
  readonly what: string;
  readonly startMs: number;
  /** Undefined if it never ended. */
  readonly lengthMs: number | undefined;
  /** Result and usage. */
  readonly note: string;
  /** The comparison of a request with earlier ones; undefined for other spans and for older sessions. */
  readonly prefix?: PrefixUse | undefined;
}

/** How much of a request the provider could read from its prompt cache. All tokens are estimates. */
export interface PrefixUse {
  readonly tokens: number;
  /** Tokens at the beginning that an earlier request began with. */
  readonly keptTokens: number;
  /** Share of all tokens in percent, rounded down. */
  readonly keptPercent: number;
  /** Why reusable tokens were read again. */
  readonly cause?: SentRequest["cause"];
  readonly lostTokens?: number | undefined;
  /** US dollars that this cost in addition; undefined if prices are unknown. */
  readonly cost?: number | undefined;
}

/** Timing of a turn, computed from stored messages. */
export interface TurnTrace {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly began: number;
  readonly words: string;
  readonly agent: string;
  readonly lengthMs: number;
  /** Sums over the spans, which may overlap. */
  readonly modelMs: number;
  readonly toolMs: number;
  readonly waitMs: number;
  /** US dollars. */
  readonly cost: number;
  /** Finish reason of the last model call. */
  readonly end: string;
  readonly spans: readonly Span[];
}

/** Traces of a session's turns, oldest first. */
export async function createTraces(messages: AsyncIterable<Message>): Promise<TurnTrace[]> {
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
    .flatMap(({ info, parts }) => createSpans(info, parts, began))
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

function createSpans(info: AssistantInfo, parts: readonly Part[], began: number): Span[] {
  return [
    createModelSpan(info, parts, began),
    ...parts.flatMap((part) => {
      if (part.type === "tool") return createCallSpans(part, began);
      return part.type === "retry" ? [createRetrySpan(part, began)] : [];
    }),
  ];
}

/** Tool calls start after the model has written them, so the last part's start ends the stream. */
function createModelSpan(info: AssistantInfo, parts: readonly Part[], began: number): Span {
  const { created, completed } = info.time;
  const hasCalls = parts.some(({ type }) => type === "tool");
  const times = parts.flatMap(getTimes);
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
    ...(info.sent && { prefix: toPrefixUse(info.sent) }),
  };
}

function toPrefixUse({ tokens, kept, lost, cause, cost }: SentRequest): PrefixUse {
  return {
    tokens,
    keptTokens: kept,
    keptPercent: tokens === 0 ? 0 : Math.floor((100 * kept) / tokens),
    ...(cause && { cause, lostTokens: lost, cost }),
  };
}

function getTimes(part: Part): number[] {
  if (part.type === "text" || part.type === "reasoning")
    return part.time === undefined ? [] : [part.time.start, part.time.end ?? part.time.start];
  if (part.type !== "tool" || !("time" in part.state) || part.state.time === undefined) return [];
  return [part.state.time.start - (part.decision?.waitedMs ?? 0)];
}

function createCallSpans(part: ToolPart, began: number): Span[] {
  const { decision, state } = part;
  const what = nameCall(part);
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

function createRetrySpan(part: Part & { type: "retry" }, began: number): Span {
  const { attempt, attempts, error, delayMs, time } = part;
  return {
    kind: "retry",
    what: `after try ${attempt} of ${attempts}`,
    startMs: time - began,
    lengthMs: delayMs,
    note: error,
  };
}
