import type { ModelUsage } from "../session-stats.ts";
import { escapeHtml } from "./markdown.ts";
import { renderPage } from "./page.ts";
import { formatDollars, formatTokens, renderBars } from "./timeline.ts";

interface Row {
  readonly name: string;
  readonly spending: ModelUsage;
}

/** Renders usage by model, day, folder or session: a plot of tokens and of cost, and a table. */
export function renderStatsPage(by: string, rows: readonly Row[], total: ModelUsage): string {
  const ordered = by === "day" ? rows.toSorted((one, other) => (one.name < other.name ? -1 : 1)) : rows;
  const bars = (value: (spending: ModelUsage) => number, format: (value: number) => string) =>
    ordered.map(({ name, spending }) => ({
      value: value(spending),
      title: `${name}: ${format(value(spending))}`,
      link: undefined,
    }));
  const plots = [renderBars(`tokens by ${by}`, bars(allTokens, formatTokens), formatTokens)];
  if (total.cost > 0)
    plots.push(
      renderBars(
        `cost by ${by}`,
        bars(({ cost }) => cost, formatDollars),
        formatDollars,
      ),
    );
  const lines = [...ordered, { name: "total", spending: total }].map(
    ({ name, spending }) =>
      `<tr><td>${escapeHtml(name)}</td><td>${spending.calls}</td><td>${formatTokens(allTokens(spending))}</td><td>${formatDollars(spending.cost)}</td></tr>`,
  );
  const head = `<tr><th>${escapeHtml(by)}</th><th>calls</th><th>tokens</th><th>cost</th></tr>`;
  return renderPage(
    "Usage",
    `<section class="plots">${plots.join("\n")}</section>\n<table>${head}${lines.join("\n")}</table>`,
  );
}

function allTokens({ tokens }: ModelUsage): number {
  return tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write;
}
