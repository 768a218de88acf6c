import { removeControls, removeEscapes } from "../../base/text/controls.ts";
import { takeColumns, widthOf } from "../terminal/output.ts";

/** Columns of a tab stop. */
const tabWidth = 8;

/** Formats one line of foreign text for a terminal: no control characters, tabs as spaces. */
export function toScreenLine(line: string): string {
  return removeControls(removeEscapes(line)).replaceAll("\t", " ".repeat(tabWidth / 2));
}

/** Cuts a line without escape sequences to a number of columns. */
export function cutLine(line: string, columns: number): string {
  if (widthOf(line) <= columns) return line;
  return columns < 1 ? "" : `${takeColumns(line, columns - 1)}…`;
}

/** Splits text into lines of at most `columns`, at spaces where possible. */
export function wrapLine(text: string, columns: number): string[] {
  const width = Math.max(1, columns);
  const lines: string[] = [];
  let open = "";
  for (const word of text.split(" ")) {
    const longer = open === "" ? word : `${open} ${word}`;
    if (widthOf(longer) <= width) {
      open = longer;
      continue;
    }
    if (open !== "") lines.push(open);
    open = word;
    while (widthOf(open) > width) {
      // A character that is wider than the line still needs a line.
      const part = takeColumns(open, width) || (Array.from(open)[0] ?? "");
      lines.push(part);
      open = open.slice(part.length);
    }
  }
  return [...lines, open];
}
