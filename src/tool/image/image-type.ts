/** Detects the image type by the first bytes: with a wrong type the provider would refuse the whole conversation. */
export function detectImageType(head: Buffer): string | undefined {
  const start = head.toString("latin1", 0, 12);
  if (start.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (start.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (/^GIF8[79]a/.test(start)) return "image/gif";
  if (start.startsWith("RIFF") && start.endsWith("WEBP")) return "image/webp";
  return isBitmap(head) ? "image/bmp" : undefined;
}

/** Text may begin with "BM" too, so the reserved zeros and the header length are checked. */
function isBitmap(head: Buffer): boolean {
  if (head.length < 26 || head.toString("latin1", 0, 2) !== "BM" || head.readUInt32LE(6) !== 0) return false;
  return [40, 52, 56, 64, 108, 124].includes(head.readUInt32LE(14));
}
