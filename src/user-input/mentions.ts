/** A path that the person named with `@`, perhaps with some of its lines, counted from 1. */
export interface Mention {
  /** As it was written, without the `@` and the lines. */
  readonly path: string;
  readonly lines?: { readonly first: number; readonly last: number };
}

/** Behind a word an `@` belongs to an address. */
const mention = /(?<![\w@./\\`-])@([^\s`@]+)/gu;
const range = /#L(\d+)(?:[-:]L?(\d+))?$/;
/** What ends a sentence or closes a bracket around a mention. */
const closing = /[.,;:!?)\]}>'"»”’]$/;

/**
 * What in the text may be mentions, outside of code. Each stands for the readings that are tried in turn: what is
 * written, and that without the punctuation behind it.
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

/** The text with blocks and spans of code left out. A fence that is not closed goes to the end, as it is shown. */
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
