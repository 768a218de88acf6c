/**
 * A chunk of program output: text, or ASCII bytes (one character each). Fast output stays bytes until it is needed
 * as text, because V8 collects megabytes of text slowly.
 */
export type TextOrBytes = string | Buffer;

export const textOf = (chunk: TextOrBytes): string =>
  typeof chunk === "string" ? chunk : chunk.toString("latin1");

export const bytesOf = (chunk: TextOrBytes): Buffer =>
  typeof chunk === "string" ? Buffer.from(chunk) : chunk;

/** Returns the length in UTF-8 bytes. */
export const byteLengthOf = (chunk: TextOrBytes): number =>
  typeof chunk === "string" ? Buffer.byteLength(chunk) : chunk.length;

/** Splits at a character. Bytes are not copied. */
export const splitAt = (chunk: TextOrBytes, at: number): [TextOrBytes, TextOrBytes] =>
  typeof chunk === "string"
    ? [chunk.slice(0, at), chunk.slice(at)]
    : [chunk.subarray(0, at), chunk.subarray(at)];
