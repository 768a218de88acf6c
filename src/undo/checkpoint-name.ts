import { type Checkpoint, hasName } from "../conversation/checkpoints.ts";

type IsWanted = (checkpoint: Checkpoint, count: number) => boolean;

/**
 * Parses a checkpoint's number or name into a test, called with each checkpoint and its position from the newest.
 * Returns undefined for an invalid text.
 */
export function parseCheckpoint(text: string): IsWanted | undefined {
  const name = text.replaceAll("`", "");
  if (name === "") return () => true;
  if (/^\d{1,4}$/.test(name)) return Number(name) === 0 ? undefined : (_, count) => count === Number(name);
  return /^\w+$/.test(name) ? (checkpoint) => hasName(checkpoint, name) : undefined;
}
