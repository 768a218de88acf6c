/** Quotes a text as one word of a POSIX shell. */
export function quoteWord(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Quotes words for a shell that reads `-c`, or for `cmd.exe`, in which no word may contain a quote or a variable. */
export function quoteLine(words: readonly string[], shell: string): string {
  return words.map(shell.endsWith("cmd.exe") ? (word) => `"${word}"` : quoteWord).join(" ");
}
