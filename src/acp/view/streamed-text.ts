interface PartProgress {
  /** Characters of the part that were taken. */
  length: number;
  /** What was taken and not shown yet, as all of it is blank; undefined from the first word on. */
  blanks: string | undefined;
}

/** How much of the model's texts a client was shown. Blanks wait for a word: alone they would be an empty message. */
export class StreamedText {
  readonly #parts = new Map<string, PartProgress>();

  /** Takes more of a part's text. Returns what is to be shown now. */
  add(partId: string, text: string): string {
    const said = this.#parts.get(partId) ?? { length: 0, blanks: "" };
    this.#parts.set(partId, said);
    said.length += text.length;
    if (said.blanks === undefined) return text;
    const shown = said.blanks + text;
    const isBlank = shown.trim() === "";
    said.blanks = isBlank ? shown : undefined;
    return isBlank ? "" : shown;
  }

  /** Takes what of the whole text was not taken yet. Returns what is to be shown now. */
  complete(partId: string, whole: string): string {
    return this.add(partId, whole.slice(this.#parts.get(partId)?.length ?? 0));
  }

  clear(): void {
    this.#parts.clear();
  }
}
