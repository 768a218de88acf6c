import { estimateTokenCount } from "tokenx";

/**
 * Texts up to this many characters are counted completely; longer ones by samples, which differ by 2 % from a complete
 * count. A first prompt waits for the count of instructions and tools, and each step for the count of its results.
 */
const countLimit = 4 * 1024;
const sampleCount = 8;

/** Cached counts, per owner of a text. */
const textCounts = new WeakMap<object, { readonly text: string; readonly tokens: number }>();
const valueCounts = new WeakMap<object, number>();

/** Estimates the tokens of a text. Takes the same time for all long texts. */
export function estimateText(text: string): number {
  if (text.length <= countLimit) return estimateTokenCount(text);
  const sampleLength = countLimit / sampleCount;
  const distance = (text.length - sampleLength) / (sampleCount - 1);
  let tokens = 0;
  for (let sample = 0; sample < sampleCount; sample++) {
    const start = Math.round(sample * distance);
    tokens += estimateTokenCount(text.slice(start, start + sampleLength));
  }
  return Math.round((tokens * text.length) / countLimit);
}

/** Estimates the tokens of an owner's text, cached until the text changes. */
export function estimateTextOf(owner: object, text: string): number {
  const last = textCounts.get(owner);
  if (last?.text === text) return last.tokens;
  const tokens = estimateText(text);
  textCounts.set(owner, { text, tokens });
  return tokens;
}

/** Estimates the tokens of a value's JSON, cached. The value must not change. */
export function estimateJsonOf(value: object): number {
  const tokens = valueCounts.get(value) ?? estimateText(JSON.stringify(value));
  valueCounts.set(value, tokens);
  return tokens;
}
