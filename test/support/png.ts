import { crc32, deflateSync } from "node:zlib";

/** A PNG of black pixels, or with the given compressed bytes after its header, possibly too few. */
export function createPng(width: number, height: number, packed?: string): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Grayscale with 8 bits per pixel.
  header.set([8, 0, 0, 0, 0], 8);
  const pixels = packed === undefined ? deflateSync(Buffer.alloc((width + 1) * height)) : Buffer.from(packed);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk("IHDR", header),
    chunk("IDAT", pixels),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
