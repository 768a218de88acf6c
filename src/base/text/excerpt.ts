/** The beginning of a text, which says how much is missing where it is longer; `length` counts characters. */
export function excerpt(text: string, length: number): string {
  const more = text.length - length;
  return more <= 0 ? text : `${beginningOf(text, length)}… (${more} characters more)`;
}

/** So many characters of a text at most; one that takes two of them is not cut into halves. */
export function beginningOf(text: string, length: number): string {
  return text.slice(0, isHalf(text.charCodeAt(length - 1)) ? length - 1 : length);
}

/** Whether a code unit is the first one of a pair. */
export const isHalf = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
