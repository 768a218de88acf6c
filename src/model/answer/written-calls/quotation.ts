import { announcesStep } from "../announcement.ts";

/** Placeholder values in examples. */
const placeholder =
  /^(?:\.{3}|\u2026|<[^<>]*>|\{\{?[\w ]+\}?\}|\[[\w ]+\]|\$\{?[A-Z_]+\}?|(?:\.?\/)?path\/to\/.*|your[_ -].*|(?:some|example)[_ -].*|value\d*)$/i;
/** Placeholders that may also be meant, such as the pattern of a search. */
const likelyPlaceholder = /^(?:foo|x+|string)$/i;

/** Returns whether a value is a placeholder. `isStrict` counts likely ones too. */
export function hasPlaceholder(input: Readonly<Record<string, unknown>>, isStrict: boolean): boolean {
  return Object.values(input).some((value) => {
    const text = typeof value === "string" ? value.trim() : "";
    return placeholder.test(text) || (isStrict && likelyPlaceholder.test(text));
  });
}

/** How many characters before a call are searched for {@link introductions}. */
const introductionLimit = 240;

/** Words that introduce an example or a quotation. */
const introductions = new RegExp(
  [
    String.raw`\b(?:for example|for instance|e\.g\.|such as|example|sample|snippet|as text|quot(?:e|es|ed|ing)|instead of|looks? like|literal)\b`,
    String.raw`\b(?:format|syntax|markup|notation|template|grammar|schema|fixture|convention)s?\b`,
    String.raw`\b(?:is|are|be|being|gets?|was|were) (?:\w+ )?(?:written|rendered|formatted|encoded|seriali[sz]ed|printed|logged|emitted|sent|represented|wrapped|parsed)\b`,
    String.raw`\b(?:prints?|printed|logs?|logged|emits?|emitted|returns?|returned|replie[sd]|responds?|responded|answers?|answered|writes?|wrote|sends?|sent|says|said|shows?|showed|uses?|used|contains?|contained|expects?|expected|produces?|produced|outputs?|generates?|generated|reads?|got|received|users?|reported|pasted|was|is)\b[^.\n]{0,60}:\s*$`,
  ].join("|"),
  "i",
);

/** The beginning of a line that quotes, lists, comments, assigns or logs. */
const quotingLine = new RegExp(
  [
    String.raw`^\s*(?:>|\||//|#|\*|\d+[.)]\s|\$|%|["'\x60\u201C\u00AB(]|\[|\d{4}-\d|\d\d:\d\d|\d+:|-(?:\s|$)|\w+ ?=)`,
    String.raw`^\s*(?:user|assistant|system|human|ai|model|bot|agent|tool|server|client|info|debug|warn(?:ing)?|error|trace|stdout|stderr|log|input|output|expected|actual|received|request|response|answer|content|message|text|raw|before|after)\b[^:]{0,20}:`,
    String.raw`["'\x60\u201C\u00AB(=]\s*$`,
  ].join("|"),
  "i",
);

/** Returns whether the text before a call makes it a quotation or an example. */
export function isQuoted(before: string): boolean {
  const fence = findOpenFence(before);
  const prose = fence === undefined ? before : before.slice(0, fence.start);
  if (fence !== undefined && fence.content.trim() !== "") return true;
  const line = prose.slice(prose.lastIndexOf("\n") + 1);
  if (fence === undefined && quotingLine.test(line)) return true;
  if (announcesStep(prose)) return false;
  const paragraph =
    prose
      .trimEnd()
      .slice(-introductionLimit)
      .split(/\n\s*\n/)
      .at(-1) ?? "";
  return introductions.test(paragraph);
}

/** Returns the code block that is still open at the end of the text. */
export function findOpenFence(text: string): { start: number; content: string } | undefined {
  let open: { start: number; marker: string; end: number } | undefined;
  for (const match of text.matchAll(/^[ \t]*(`{3,}|~{3,})[^\n]*(?:\n|$)/gm)) {
    const marker = match[1] ?? "";
    if (open === undefined) open = { start: match.index, marker, end: match.index + match[0].length };
    else if (marker.startsWith(open.marker)) open = undefined;
  }
  return open && { start: open.start, content: text.slice(open.end) };
}
