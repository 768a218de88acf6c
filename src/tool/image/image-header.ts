import { crc32 } from "node:zlib";
import { detectImageType } from "./image-type.ts";

/** Facts read from an image's bytes without decoding it. */
export interface ImageHeader {
  readonly mime: string;
  /** Pixels. */
  readonly width: number;
  readonly height: number;
  /** False if the file is cut off or inconsistent; providers refuse such files. */
  readonly isWhole: boolean;
  /** An optional part has a wrong checksum: browsers accept such a file, some providers do not. */
  readonly isFlawed?: boolean;
}

/** Reads type and size; undefined if no size is found, so the bytes may not be an image. */
export function readImageHeader(bytes: Buffer): ImageHeader | undefined {
  const mime = detectImageType(bytes);
  const found = mime === undefined ? undefined : readers.get(mime)?.(bytes);
  if (mime === undefined || found === undefined || found.width <= 0 || found.height <= 0) return undefined;
  return { mime, ...found };
}

type HeaderFields = Omit<ImageHeader, "mime"> | undefined;

const readers: ReadonlyMap<string, (bytes: Buffer) => HeaderFields> = new Map([
  ["image/png", readPng],
  ["image/jpeg", readJpeg],
  ["image/gif", readGif],
  ["image/webp", readWebp],
  ["image/bmp", readBitmap],
]);

/** Chunks of length, type, data and checksum, from IHDR to IEND (PNG specification, 5). */
function readPng(bytes: Buffer): HeaderFields {
  if (bytes.length < 33 || bytes.toString("latin1", 12, 16) !== "IHDR") return undefined;
  const size = { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  let isFlawed = false;
  for (let at = 8; at + 12 <= bytes.length;) {
    const end = at + 8 + bytes.readUInt32BE(at);
    if (end + 4 > bytes.length) break;
    const type = bytes.toString("latin1", at + 4, at + 8);
    const hasSum = crc32(bytes.subarray(at + 4, end)) === bytes.readUInt32BE(end);
    if (!hasSum && !isAncillary(type)) break;
    isFlawed ||= !hasSum;
    if (type === "IEND") return { ...size, isWhole: true, ...(isFlawed && { isFlawed }) };
    at = end + 4;
  }
  return { ...size, isWhole: false };
}

/** A lower-case first letter marks a chunk that decoders may skip (PNG specification, 5.4). */
function isAncillary(type: string): boolean {
  return /^[a-z]/.test(type);
}

/** Segments up to the frame header, which holds the size; an end marker follows the last scan (ITU T.81, B). */
function readJpeg(bytes: Buffer): HeaderFields {
  let at = 2;
  while (at + 9 <= bytes.length) {
    if (bytes[at] !== 0xff) return undefined;
    const marker = bytes[at + 1] ?? 0;
    if (marker === 0xff || marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)) {
      at += marker === 0xff ? 1 : 2;
      continue;
    }
    if (isFrameHeader(marker)) {
      const size = { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
      return { ...size, isWhole: bytes.lastIndexOf(Buffer.from([0xff, 0xd9])) > at };
    }
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}

/** SOF0 to SOF15, except DHT, JPG and DAC in the same range. */
function isFrameHeader(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
}

/** Ends with a semicolon (GIF89a specification, 27); some programs append zeros. */
function readGif(bytes: Buffer): HeaderFields {
  if (bytes.length < 13) return undefined;
  const size = { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  return { ...size, isWhole: bytes.subarray(13).includes(0x3b, -64) };
}

/** A RIFF file; the first chunk names the encoding (RFC 9649). */
function readWebp(bytes: Buffer): HeaderFields {
  if (bytes.length < 30) return undefined;
  const isWhole = bytes.readUInt32LE(4) + 8 <= bytes.length + 1;
  const size = webpSize(bytes);
  return size && { ...size, isWhole };
}

function webpSize(bytes: Buffer): { width: number; height: number } | undefined {
  switch (bytes.toString("latin1", 12, 16)) {
    case "VP8X":
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    case "VP8L": {
      const packed = bytes.readUInt32LE(21);
      return { width: (packed & 0x3fff) + 1, height: ((packed >>> 14) & 0x3fff) + 1 };
    }
    case "VP8 ":
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    default:
      return undefined;
  }
}

/** A negative height means that rows run from top to bottom. */
function readBitmap(bytes: Buffer): HeaderFields {
  const size = { width: bytes.readInt32LE(18), height: Math.abs(bytes.readInt32LE(22)) };
  return { ...size, isWhole: bytes.readUInt32LE(10) < bytes.length };
}
