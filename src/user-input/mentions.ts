/** A path that the user named with `@`, optionally with a range of lines, counted from 1. */
export interface Mention {
  /** The path without the `@` and the lines. */
  readonly path: string;
  readonly lines?: { readonly first: number; readonly last: number };
}

/** An `@` directly after a word is part of an address. */
const mention = /(?<![\w@./\\`-])@([^\s`@]+)/gu;
const range = /#L(\d+)(?:[-:]L?(\d+))?$/;
/** Punctuation that may follow a mention. */
const closing = /[.,;:!?)\]}>'"»”’]$/;

/**
 * Returns possible mentions outside of code. Each one lists its readings in order: the full word, then without
 * trailing punctuation.
 */
export function findMentions(text: string): Mention[][] {
  const found = [...omitCode(text).matchAll(mention)].map(([, written = ""]) => written);
  return [...new Set(found)].map(getReadings);
}

function getReadings(written: string): Mention[] {
  const readings: Mention[] = [];
  for (let rest = written; rest !== ""; rest = rest.slice(0, -1)) {
    readings.push(toMention(rest));
    if (!closing.test(rest)) break;
  }
  return readings.filter(({ path }) => !/^\.*$/.test(path));
}

function toMention(written: string): Mention {
  const found = range.exec(written);
  if (found === null) return { path: written };
  const first = Math.max(1, Number(found[1]));
  const last = Math.max(first, Number(found[2] ?? found[1]));
  return { path: written.slice(0, found.index), lines: { first, last } };
}

/** Removes code blocks and spans. An unclosed fence extends to the end, as in Markdown. */
function omitCode(text: string): string {
  const lines: string[] = [];
  let fence: string | undefined;
  for (const line of text.split("\n")) {
    const mark = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line);
    if (fence !== undefined) {
      if (mark?.[1]?.startsWith(fence) && mark[2]?.trim() === "") fence = undefined;
      continue;
    }
    if (mark === null) lines.push(line);
    else fence = mark[1];
  }
  return lines.join("\n").replaceAll(/(`+)(?!`)[^]*?[^`]\1(?!`)/g, " ");
}
