/** The beginning of a text, which says how much is missing where it is longer; `length` counts characters. */
export function excerpt(text: string, length: number): string {
  const more = text.length - length;
  return more <= 0 ? text : `${text.slice(0, length)}… (${more} characters more)`;
}
