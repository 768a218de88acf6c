/** Quotes a text as one word of a POSIX shell. */
export function quoteWord(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
