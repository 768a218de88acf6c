import { describe, expect, test } from "vitest";
import { PhotonImage } from "@silvia-odwyer/photon-node";
import { fitImage, imageLimitBytes, imageSideLimit } from "../../../src/tool/image/image.ts";
import { readImageHeader } from "../../../src/tool/image/image-header.ts";
import { fitMedium } from "../../../src/tool/image/media.ts";
import { createPng } from "../../support/png.ts";

/** Noise does not compress well. */
function noise(width: number, height: number): PhotonImage {
  const pixels = new Uint8Array(width * height * 4);
  let seed = 1;
  for (let at = 0; at < pixels.length; at++) {
    seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
    pixels[at] = at % 4 === 3 ? 255 : seed >> 16;
  }
  return new PhotonImage(pixels, width, height);
}

const small = noise(6, 4);
const samples = new Map([
  ["image/png", Buffer.from(small.get_bytes())],
  ["image/jpeg", Buffer.from(small.get_bytes_jpeg(80))],
  ["image/webp", Buffer.from(small.get_bytes_webp())],
  ["image/gif", Buffer.from("R0lGODlhBgAEAIAAAAAAAP///yH5BAAAAAAALAAAAAAGAAQAAAIFhI+py1wAOw==", "base64")],
]);

/** 24 bits per pixel, lines padded to 4 bytes. */
function bitmap(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(54 + Math.ceil((width * 3) / 4) * 4 * height);
  bytes.write("BM");
  bytes.writeUInt32LE(bytes.length, 2);
  bytes.writeUInt32LE(54, 10);
  bytes.writeUInt32LE(40, 14);
  bytes.writeInt32LE(width, 18);
  bytes.writeInt32LE(height, 22);
  bytes.writeUInt16LE(1, 26);
  bytes.writeUInt16LE(24, 28);
  return bytes;
}

describe.each([...samples])("%s", (mime, bytes) => {
  test("has its size, and is unchanged if it is small", async () => {
    expect(readImageHeader(bytes)).toEqual({ mime, width: 6, height: 4, isWhole: true });
    expect(await fitImage(bytes)).toEqual({ outcome: "fits", mime, bytes, note: "" });
  });

  test("is recognized as damaged when its end is missing", async () => {
    for (const length of [0, 4, 13, Math.floor(bytes.length / 2), bytes.length - 3]) {
      const fitted = await fitImage(bytes.subarray(0, length));
      expect(fitted, `${length} bytes`).toMatchObject({ outcome: "unfit", isDamaged: true });
    }
  });
});

test("a long side is scaled down to the limit, in proportion", async () => {
  const fitted = await fitImage(Buffer.from(noise(2_400, 30).get_bytes_jpeg(80)));
  expect(fitted).toMatchObject({
    outcome: "fits",
    mime: "image/jpeg",
    note: "scaled down from 2400 × 30 to 2000 × 25 pixels",
  });
});

test("with many bytes is compressed to fewer", async () => {
  const bytes = Buffer.from(noise(1_200, 1_020).get_bytes());
  expect(bytes.length).toBeGreaterThan(imageLimitBytes);
  const fitted = await fitImage(bytes);
  if (fitted.outcome !== "fits") throw new Error(fitted.reason);
  expect(fitted.bytes.length).toBeLessThanOrEqual(imageLimitBytes);
  expect(readImageHeader(fitted.bytes)?.width).toBeLessThanOrEqual(imageSideLimit);
});

test("repairs a wrong checksum of an optional chunk, and reports other wrong ones", async () => {
  const png = createPng(6, 4);
  const text = Buffer.from("\0\0\0\0tEXt\0\0\0\0", "latin1");
  const flawed = Buffer.concat([png.subarray(0, 33), text, png.subarray(33)]);
  const fitted = await fitImage(flawed);
  expect(fitted).toMatchObject({ outcome: "fits", mime: "image/png", note: "converted to image/png" });
  const needed = Buffer.from(png);
  needed.writeUInt32BE(0, 29);
  expect(await fitImage(needed)).toMatchObject({ outcome: "unfit", isDamaged: true });
});

test("an image format that providers do not accept is converted", async () => {
  expect(await fitImage(bitmap(5, 3))).toMatchObject({
    outcome: "fits",
    mime: "image/png",
    note: "converted to image/png",
  });
});

test("a decompression bomb is rejected by its header, damaged data when it is decoded", async () => {
  expect(await fitImage(createPng(50_000, 50_000, ""))).toMatchObject({
    reason: expect.stringContaining("50000 × 50000 pixels"),
  });
  expect(await fitImage(createPng(5_000, 10, "no pixels"))).toMatchObject({
    reason: expect.stringContaining("cannot be decoded"),
  });
});

test("a cancel ends the work", async () => {
  const cancelled = AbortSignal.abort();
  await expect(fitImage(createPng(5_000, 10), cancelled)).rejects.toThrow(/abort/i);
});

test("the accepted types depend on the bytes, not on the file name", async () => {
  const [png, jpeg] = [samples.get("image/png"), samples.get("image/jpeg")];
  if (png === undefined || jpeg === undefined) throw new Error("no samples");
  expect(await fitMedium({ bytes: jpeg, mime: "image/png", name: "a" })).toMatchObject({
    outcome: "fits",
    attachment: { mime: "image/jpeg", filename: "a" },
  });
  const reasons = [
    { bytes: Buffer.from("<svg/>"), mime: "image/svg+xml" },
    { bytes: Buffer.from("PK"), mime: "application/zip" },
    { bytes: Buffer.from("%PDF-1.7"), mime: "application/pdf" },
    { bytes: Buffer.alloc(6 * 1024 * 1024), mime: "audio/wav" },
  ].map(async (medium) => {
    const fitted = await fitMedium(medium);
    return fitted.outcome === "unfit" ? fitted.reason : "fits";
  });
  expect(await Promise.all(reasons)).toEqual([
    "SVG is text: attach it as a file.",
    "no model takes application/zip.",
    "it is damaged, or no PDF: its beginning or its end is missing.",
    "it has 6291456 bytes, more than the 5 MiB that can be attached.",
  ]);
});
