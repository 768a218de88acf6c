/**
 * A piece of what a program prints: text, or bytes that are ASCII, of which each is one character. What comes fast
 * stays bytes for as long as nobody looks at it as text: V8 takes long to collect text by the megabyte.
 */
export type TextOrBytes = string | Buffer;

export const textOf = (piece: TextOrBytes): string =>
  typeof piece === "string" ? piece : piece.toString("latin1");

export const bytesOf = (piece: TextOrBytes): Buffer =>
  typeof piece === "string" ? Buffer.from(piece) : piece;

/** How many bytes of UTF-8 it is. */
export const byteLengthOf = (piece: TextOrBytes): number =>
  typeof piece === "string" ? Buffer.byteLength(piece) : piece.length;

/** What stands before a character and what from there on; bytes are not copied. */
export const divide = (piece: TextOrBytes, at: number): [TextOrBytes, TextOrBytes] =>
  typeof piece === "string"
    ? [piece.slice(0, at), piece.slice(at)]
    : [piece.subarray(0, at), piece.subarray(at)];
