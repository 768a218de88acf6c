import { writeSync } from "node:fs";
import type { Writable } from "node:stream";

/** Longer texts go to the stream: what the system takes of them at once is little. */
const directWriteLimit = 16 * 1024;

/**
 * Gives a short text to the system without the stream before it, which costs as much again as the writing. Only where
 * nothing waits in the stream, and where the system answers at once whether it takes it: Node opens pipes and sockets
 * so, on other systems than Windows. Returns what was not taken, for the stream.
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
    // Full, or gone: the stream waits for the one and tells of the other.
    return bytes;
  }
}
