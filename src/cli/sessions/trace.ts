import { type PrefixUse, type Span, createTraces, type TurnTrace } from "../../reports/trace.ts";
import type { Call } from "../command-line/command.ts";
import { findCalledSession } from "./find-session.ts";
import { openApp } from "../local-app.ts";
import { print, printJson, toCell } from "../terminal/output.ts";
import { type Style, styleFor } from "../terminal/style.ts";
import { wrapWords } from "../terminal/wrap-words.ts";
import { UsageError } from "../command-line/usage.ts";

/** Shows the timeline of a session's turns. */
export async function trace(call: Call): Promise<number> {
  const store = await openApp().store();
  const { id } = await findCalledSession(store, call);
  const turns = (await createTraces(store.messages(id))).map((turn, at) => ({ turn: at + 1, ...turn }));
  const number = call.number("turn");
  const wanted = number === undefined ? turns : turns.filter(({ turn }) => turn === number);
  if (number !== undefined && wanted.length === 0)
    throw new UsageError(`the session has ${turns.length} turns, no turn ${number}`, "trace");
  if (call.has("json")) {
    await printJson({ session: id, turns: wanted });
    return 0;
  }
  const style = styleFor(process.stdout, process.env);
  await print(`session ${id}`);
  for (const turn of wanted) for (const line of formatTurn(turn, style)) await print(line);
  return 0;
}

/** Wraps a line between words on a terminal; its continuation begins in the column `indent`. */
function wrapAt(indent: number, text: string): string[] {
  const width = process.stdout.columns || Number.POSITIVE_INFINITY;
  const left = " ".repeat(width < wideTerminal ? Math.min(narrowIndent, indent) : indent);
  return wrapWords(text, width - left.length).map((line) => left + line);
}

function formatTurn({ turn, ...trace }: TurnTrace & { turn: number }, style: Style): string[] {
  const { began, words, agent, spans, lengthMs, modelMs, toolMs, waitMs, cost, end } = trace;
  const sums = [
    `model ${formatSeconds(modelMs)}`,
    `tools ${formatSeconds(toolMs)}`,
    `waiting ${formatSeconds(waitMs)}`,
  ];
  const price = cost > 0 ? [`$${cost.toFixed(4)}`] : [];
  return [
    "",
    ...wrapAt(0, `turn ${turn}  ${new Date(began).toISOString()}  ${agent}: ${toCell(words)}`).map((line) =>
      style.bold(line),
    ),
    ...spans.flatMap((span) => [formatSpan(span, style), ...formatPrefix(span, style)]),
    ...wrapAt(
      sumIndent,
      `${formatSeconds(lengthMs)} in all: ${[...sums, ...price].join(", ")}; ${toCell(end)} (${trace.id})`,
    ).map((line) => style.dim(line)),
  ];
}

/** Maximum characters of a span's name and of its note. */
const textLimit = 100;
/** Columns before the name. */
const leadWidth = 33;
/** In a narrower terminal, notes begin further left. */
const wideTerminal = 80;
const narrowIndent = 4;
/** Columns before the sums of a turn. */
const sumIndent = 2;

function formatSpan({ kind, what, startMs, lengthMs, note }: Span, style: Style): string {
  const when = `+${formatSeconds(startMs)}`.padStart(10);
  const length = (lengthMs === undefined ? "never" : formatSeconds(lengthMs)).padStart(9);
  const width = (process.stdout.columns || Number.POSITIVE_INFINITY) - leadWidth;
  const name = truncate(what, width);
  return `${when} ${length}  ${style.cyan(kind.padEnd(7))}  ${name}  ${style.dim(truncate(note, width - name.length))}`;
}

const causes: Readonly<Record<NonNullable<PrefixUse["cause"]>, string>> = {
  model: "the model changed",
  agent: "the agent changed",
  system: "the system prompt changed",
  tools: "tools changed",
  compaction: "a summary replaced messages",
  cleared: "old outputs were omitted",
  media: "refused media were omitted",
  thoughts: "refused reasoning was omitted",
  messages: "earlier messages changed",
  expired: "the provider's cache expired",
};

/** Describes what a request had in common with earlier ones, below the line of its span. */
function formatPrefix({ prefix }: Span, style: Style): string[] {
  if (prefix === undefined) return [];
  const { tokens, keptTokens, keptPercent, cause, lostTokens, cost } = prefix;
  if (keptTokens === 0 && cause === undefined)
    return wrapAt(leadWidth, `a prompt of ${format(tokens)} tokens, none sent before`).map((line) =>
      style.dim(line),
    );
  const kept = `${keptPercent} % of the prompt as before (${format(keptTokens)} of ${format(tokens)} tokens)`;
  const price = cost === undefined ? "" : `, $${cost.toFixed(4)} more`;
  const loss =
    cause === undefined ? "" : `; ${causes[cause]}: ${format(lostTokens)} tokens read again${price}`;
  return wrapAt(leadWidth, kept + loss).map((line) => style.dim(line));
}

const format = (tokens = 0): string => tokens.toLocaleString("en");

/** Truncates text to a width, but not below eight characters. */
function truncate(text: string, width: number): string {
  const line = toCell(text);
  const limit = Math.min(textLimit, Math.max(8, width));
  return line.length <= limit ? line : `${line.slice(0, limit - 1)}…`;
}

function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(3)} s`;
}
