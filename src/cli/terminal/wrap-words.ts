/** Wraps text at spaces. A word wider than the line, such as an address, gets its own line. */
export function wrapWords(text: string, width: number): string[] {
  const lines: string[] = [];
  let open = "";
  for (const word of text.split(" ")) {
    const longer = open === "" ? word : `${open} ${word}`;
    if (open !== "" && longer.length > width) lines.push(open);
    open = open !== "" && longer.length > width ? word : longer;
  }
  return [...lines, open];
}
