interface PartProgress {
  /** Received characters of the part. */
  length: number;
  /** Leading whitespace that was not sent yet; undefined after the first word. */
  blanks: string | undefined;
}

/** Tracks the sent text per part. Leading whitespace waits for a word: alone it would create an empty message. */
export class StreamedText {
  readonly #parts = new Map<string, PartProgress>();

  /** Adds a delta. Returns the text to send now. */
  add(partId: string, text: string): string {
    const sent = this.#parts.get(partId) ?? { length: 0, blanks: "" };
    this.#parts.set(partId, sent);
    sent.length += text.length;
    if (sent.blanks === undefined) return text;
    const shown = sent.blanks + text;
    const isBlank = shown.trim() === "";
    sent.blanks = isBlank ? shown : undefined;
    return isBlank ? "" : shown;
  }

  /** Adds the rest of the complete text. Returns the text to send now. */
  complete(partId: string, whole: string): string {
    return this.add(partId, whole.slice(this.#parts.get(partId)?.length ?? 0));
  }

  clear(): void {
    this.#parts.clear();
  }
}
