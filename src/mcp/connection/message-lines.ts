/** Maximum bytes of a message. Longer ones are dropped, and their request fails. */
export const messageLimitBytes = 16 * 1024 * 1024;
/** Bytes at both ends of a dropped message that are searched for its id. */
const edgeBytes = 512;
const newline = 0x0a;

/** A line of text, or the ends of a line that was too long. */
export type Line = { kind: "text"; text: string } | { kind: "too-long"; head: string; tail: string };

/** Splits chunks into lines. Scans each byte once and buffers at most one line. */
export class MessageLines {
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Set while the rest of a too long line is skipped. */
  #dropped: { head: string; tail: Buffer } | undefined;

  push(chunk: Buffer): Line[] {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      this.#add(chunk.subarray(start, end));
      lines.push(this.#take());
      start = end + 1;
    }
    this.#add(chunk.subarray(start));
    return lines;
  }

  #add(piece: Buffer): void {
    if (this.#dropped !== undefined) {
      this.#dropped.tail = Buffer.concat([this.#dropped.tail, piece.subarray(-edgeBytes)]).subarray(
        -edgeBytes,
      );
      return;
    }
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    if (this.#bytes <= messageLimitBytes) return;
    const whole = Buffer.concat(this.#pieces);
    this.#dropped = {
      head: whole.toString("latin1", 0, edgeBytes),
      tail: Buffer.from(whole.subarray(-edgeBytes)),
    };
    this.#pieces = [];
    this.#bytes = 0;
  }

  #take(): Line {
    const dropped = this.#dropped;
    const text = Buffer.concat(this.#pieces).toString("utf8");
    this.#dropped = undefined;
    this.#pieces = [];
    this.#bytes = 0;
    if (dropped !== undefined)
      return { kind: "too-long", head: dropped.head, tail: dropped.tail.toString("latin1") };
    return { kind: "text", text };
  }
}

/** Finds the request id of a dropped message in its ends. */
export function answeredId({ head, tail }: { head: string; tail: string }): number | undefined {
  const atHead = /^\s*\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*(\d+)\s*,/.exec(head);
  const atTail = /"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(tail);
  const found = atHead?.[1] ?? atTail?.[1];
  return found === undefined ? undefined : Number(found);
}
