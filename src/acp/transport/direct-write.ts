import { writeSync } from "node:fs";
import type { Writable } from "node:stream";

/** Longer texts use the stream, because the system accepts only a small part at once. */
const directWriteLimit = 16 * 1024;

/**
 * Writes a short text to the file descriptor without the stream, which doubles the cost of a write.
 * - The stream must be empty.
 * - Requires a non-blocking descriptor: Node opens pipes and sockets so, except on Windows.
 * - Returns the part that was not written, for the stream; undefined if all was written.
 */
export function writeDirectly(
  output: Writable & { fd?: number; isTTY?: boolean },
  text: string,
): string | Uint8Array | undefined {
  const { fd, isTTY } = output;
  if (fd === undefined || isTTY || text.length > directWriteLimit || process.platform === "win32")
    return text;
  const bytes = Buffer.from(text);
  try {
    const written = writeSync(fd, bytes);
    return written === bytes.length ? undefined : bytes.subarray(written);
  } catch {
    // Full or closed: the stream waits or reports the error.
    return bytes;
  }
}
