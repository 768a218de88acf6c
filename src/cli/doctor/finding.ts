import { removeControls } from "../../base/text/controls.ts";
import type { Style } from "../terminal/style.ts";
import { wrapWords } from "../terminal/wrap-words.ts";

/** Result of one check of `fairlead doctor`. `todo` says what to do about a problem, `note` what to know about it. */
export interface Finding {
  what: string;
  found: string;
  todo?: string;
  note?: string;
}

const nameWidth = 14;
/** Columns before the advice. */
const indent = 5;
/** In a narrower terminal, further lines of a finding begin where the advice does. */
const wideTerminal = 80;

/** Formats a finding in lines of at most `width` columns, unless a word is longer. */
export function formatFinding(
  { what, found, todo, note }: Finding,
  { style, width }: { readonly style: Style; readonly width: number },
): string {
  const advice = todo ?? note;
  const mark =
    advice === undefined
      ? style.green("ok  ")
      : todo === undefined
        ? style.yellow("note")
        : style.red("todo");
  const name = what.padEnd(nameWidth);
  const left = indent + nameWidth + 1;
  const [first = "", ...rest] = wrapWords(removeControls(found), width - left);
  const below = " ".repeat(width < wideTerminal ? indent : left);
  const lines = width < wideTerminal ? wrapWords(rest.join(" "), width - indent) : rest;
  const more = rest.length === 0 ? [] : lines;
  const advised = advice === undefined ? [] : wrapWords(removeControls(advice), width - indent);
  return [
    `${mark} ${name} ${first}`,
    ...more.map((line) => `${below}${line}`),
    ...advised.map((line) => `${" ".repeat(indent)}${style.yellow(line)}`),
  ].join("\n");
}
