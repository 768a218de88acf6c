import type { AssistantInfo, Message } from "../../message/message.ts";
import { escapeHtml } from "./markdown.ts";

const width = 900;
const height = 120;
const left = 60;
const bottom = 18;
/** Thinner bars would not be visible: neighbors are drawn as one. */
const barLimit = 400;

interface Bar {
  readonly value: number;
  readonly title: string;
  readonly link: string | undefined;
}

/** Plots of the model calls of a session: tokens sent and written, seconds, and the cost so far. */
export function renderTimeline(messages: readonly Message[]): string {
  const calls = messages.flatMap(({ info }) => (info.role === "assistant" && isCall(info) ? [info] : []));
  if (calls.length === 0) return "";
  let cost = 0;
  const bars = (value: (info: AssistantInfo) => number, unit: (value: number) => string) =>
    calls.map((info, at) => ({
      value: value(info),
      title: `Call ${at + 1}: ${unit(value(info))}`,
      link: info.id,
    }));
  const plots = [
    renderBars("tokens sent per model call", bars(sentTokens, formatTokens), formatTokens),
    renderBars(
      "tokens written per model call",
      bars(({ tokens }) => tokens.output + tokens.reasoning, formatTokens),
      formatTokens,
    ),
    renderBars("time per model call", bars(secondsOf, formatSeconds), formatSeconds),
  ];
  if (calls.some((info) => info.cost > 0))
    plots.push(
      renderBars(
        "cost so far",
        bars((info) => (cost += info.cost), formatDollars),
        formatDollars,
      ),
    );
  return `<section class="plots">${plots.join("\n")}</section>`;
}

const isCall = ({ tokens, time }: AssistantInfo): boolean =>
  time.completed !== undefined && tokens.input + tokens.output + tokens.cache.read + tokens.cache.write > 0;
const sentTokens = ({ tokens }: AssistantInfo): number =>
  tokens.input + tokens.cache.read + tokens.cache.write;
const secondsOf = ({ time }: AssistantInfo): number =>
  ((time.completed ?? time.created) - time.created) / 1_000;

/** Renders a bar chart whose bars lead to the messages that they belong to. */
export function renderBars(name: string, all: readonly Bar[], format: (value: number) => string): string {
  const shown = mergeNeighbours(all);
  const most = Math.max(...shown.map(({ value }) => value), Number.MIN_VALUE);
  const step = (width - left) / shown.length;
  const drawn = shown.map(({ value, title, link }, at) => {
    const size = Math.max((value / most) * (height - bottom), value > 0 ? 1 : 0);
    const place = `x="${(left + at * step).toFixed(1)}" y="${(height - bottom - size).toFixed(1)}"`;
    const rect = `<rect ${place} width="${Math.max(step * 0.8, 0.8).toFixed(1)}" height="${size.toFixed(1)}"><title>${escapeHtml(title)}</title></rect>`;
    return link === undefined ? rect : `<a href="#${escapeHtml(link)}">${rect}</a>`;
  });
  const axis = `<line x1="${left}" y1="${height - bottom}" x2="${width}" y2="${height - bottom}"/>`;
  const labels = `<text x="${left - 6}" y="10" text-anchor="end">${escapeHtml(format(most === Number.MIN_VALUE ? 0 : most))}</text><text x="${left - 6}" y="${height - bottom}" text-anchor="end">0</text><text x="${left}" y="${height - 4}">1</text><text x="${width}" y="${height - 4}" text-anchor="end">${all.length}</text>`;
  return `<figure><figcaption>${escapeHtml(name)}</figcaption><svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeHtml(name)}">${axis}${labels}${drawn.join("")}</svg></figure>`;
}

function mergeNeighbours(bars: readonly Bar[]): readonly Bar[] {
  const size = Math.ceil(bars.length / barLimit);
  if (size <= 1) return bars;
  return Array.from({ length: Math.ceil(bars.length / size) }, (_, at) => {
    const group = bars.slice(at * size, (at + 1) * size);
    return group.reduce((one, other) => (other.value > one.value ? other : one));
  });
}

export const formatTokens = (tokens: number): string =>
  tokens < 1_000 ? String(Math.round(tokens)) : `${(tokens / 1_000).toFixed(tokens < 10_000 ? 1 : 0)}k`;
const formatSeconds = (seconds: number): string => `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
export const formatDollars = (dollars: number): string => `$${dollars.toFixed(dollars < 1 ? 4 : 2)}`;
