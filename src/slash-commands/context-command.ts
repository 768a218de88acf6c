import type { Usage } from "../message/event.ts";

/** Usage of the context window by the next request, in estimated tokens. */
export interface ShownContext {
  readonly model: string;
  readonly window: number | undefined;
  /** The size at which the conversation is compacted. */
  readonly usable: number | undefined;
  readonly entries: readonly { readonly name: string; readonly tokens: number }[];
}

/** Formats what fills the context window as a table that also reads well as plain text. */
export function describeContext(context: ShownContext | undefined, counted: Usage | undefined): string {
  if (context === undefined) return "No model is selected; `/model` lists the models.";
  const { model, window, usable, entries } = context;
  const sum = entries.reduce((all, { tokens }) => all + tokens, 0);
  const whole = window ?? sum;
  const rows = [...entries, { name: "Sum", tokens: sum }].map(({ name, tokens }) => [
    name,
    format(tokens),
    `${((100 * tokens) / Math.max(1, whole)).toFixed(1)} %`,
  ]);
  const head =
    window === undefined
      ? `The next request to ${model} has about ${format(sum)} tokens; its context window is unknown.`
      : `The next request to ${model} has about ${format(sum)} of ${format(window)} tokens.`;
  const last =
    counted === undefined ? "" : ` The provider counted ${format(counted.used)} tokens at the last answer.`;
  const limit = usable === undefined ? "" : ` The conversation is compacted above ${format(usable)} tokens.`;
  const share = window === undefined ? "of the request" : "of the window";
  return [`${head}${last}${limit}`, "", ...formatTable(["What", "Tokens", share], rows)].join("\n");
}

const format = (tokens: number): string => tokens.toLocaleString("en");

/** Formats a Markdown table with columns of equal width; all but the first are right-aligned. */
function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const toLine = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join(" | ")} |`;
  const rule = widths.map((width, column) =>
    column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`,
  );
  return [toLine(head), `| ${rule.join(" | ")} |`, ...rows.map(toLine)];
}
