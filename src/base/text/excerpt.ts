/** Returns the start of a text with the number of omitted characters; `length` counts UTF-16 units. */
export function excerpt(text: string, length: number): string {
  const more = text.length - length;
  return more <= 0 ? text : `${beginningOf(text, length)}… (${more} characters more)`;
}

/** Returns at most `length` UTF-16 units. Does not split a surrogate pair. */
export function beginningOf(text: string, length: number): string {
  return text.slice(0, isHighSurrogate(text.charCodeAt(length - 1)) ? length - 1 : length);
}

/** True for the first unit of a surrogate pair. */
export const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
