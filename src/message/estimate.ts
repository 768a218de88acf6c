import { estimateTokenCount } from "tokenx";

/** Characters that are counted of a text; of a longer one samples are. */
const mostCounted = 64 * 1024;
const sampleCount = 8;

/** What was counted for what a text belongs to. */
const counted = new WeakMap<object, { readonly text: string; readonly tokens: number }>();
const countedValues = new WeakMap<object, number>();

/** How many tokens a text has, estimated. Takes a few milliseconds at most, however long the text is. */
export function estimateText(text: string): number {
  if (text.length <= mostCounted) return estimateTokenCount(text);
  const sampleLength = mostCounted / sampleCount;
  const distance = (text.length - sampleLength) / (sampleCount - 1);
  let tokens = 0;
  for (let sample = 0; sample < sampleCount; sample++) {
    const start = Math.round(sample * distance);
    tokens += estimateTokenCount(text.slice(start, start + sampleLength));
  }
  return Math.round((tokens * text.length) / mostCounted);
}

/** The same for the text of something that is asked about again and again: it is counted anew only when it is another. */
export function estimateTextOf(owner: object, text: string): number {
  const last = counted.get(owner);
  if (last?.text === text) return last.tokens;
  const tokens = estimateText(text);
  counted.set(owner, { text, tokens });
  return tokens;
}

/** The same for the JSON of a value that stays as it is. */
export function estimateJsonOf(value: object): number {
  const known = countedValues.get(value) ?? estimateText(JSON.stringify(value));
  countedValues.set(value, known);
  return known;
}
