import type { Instruction } from "./instructions.ts";

/** Shortens the longest texts so that all together have at most `limit` bytes, notes aside. Short texts stay whole. */
export function fitInstructions(instructions: readonly Instruction[], limit: number): Instruction[] {
  const each = findLimitOfEach(
    instructions.map(({ text }) => Buffer.byteLength(text)),
    limit,
  );
  return instructions.map(({ path, text }) => ({ path, text: shorten(path, text, each) }));
}

/** Returns the bytes that each text may have, so that their sum stays within the limit. */
function findLimitOfEach(sizes: readonly number[], limit: number): number {
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total <= limit) return Number.POSITIVE_INFINITY;
  let left = limit;
  const sorted = sizes.toSorted((one, other) => one - other);
  for (const [index, size] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - index));
    if (size > share) return share;
    left -= size;
  }
  return left;
}

function shorten(path: string, text: string, limit: number): string {
  const bytes = Buffer.from(text);
  if (bytes.byteLength <= limit) return text;
  const start = new TextDecoder().decode(bytes.subarray(0, limit), { stream: true });
  const lineEnd = start.lastIndexOf("\n");
  const shown = lineEnd > start.length / 2 ? start.slice(0, lineEnd) : start;
  const get = /^https?:/i.test(path) ? "Fetch" : "Read";
  return `${shown}\n[Cut after ${Buffer.byteLength(shown)} bytes, to save context. ${get} ${path} for the rest.]`;
}
