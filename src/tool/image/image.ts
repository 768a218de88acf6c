import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { z } from "zod";
import { orAfter } from "../../base/async.ts";
import { messageOf } from "../../base/errors.ts";
import { type ImageHeader, readImageHeader } from "./image-header.ts";

/** An image that providers accept, or the reason why it cannot be sent. */
export type FittedImage =
  | {
      outcome: "fits";
      mime: string;
      bytes: Buffer;
      /** Describes changes to the original; empty if there are none. */
      note: string;
    }
  | { outcome: "unfit"; reason: string; isDamaged: boolean };

/** Pixels. Providers scale longer sides down, and some refuse them together with other images. */
export const imageSideLimit = 2_000;
/** Sent as base64, this stays below the providers' limit of 5 MB. */
export const imageLimitBytes = 3.5 * 1024 * 1024;
/** Larger files are not read, and images with more pixels not decoded: each pixel takes 4 bytes of memory. */
export const imageFileLimitBytes = 32 * 1024 * 1024;
const pixelsLimit = 40_000_000;
const timeLimitMs = 20_000;

/** Types that providers accept; other types are converted. */
const supportedTypes: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/**
 * Makes an image fit for a model. An intact image within the limits stays unchanged; a larger one is scaled down in a
 * worker thread. The type is detected from the bytes, not from the name.
 */
export async function fitImage(bytes: Buffer, signal?: AbortSignal): Promise<FittedImage> {
  if (bytes.length > imageFileLimitBytes)
    return unfit(`it has ${bytes.length} bytes, more than the limit of ${imageFileLimitBytes}`);
  const header = readImageHeader(bytes);
  if (header?.isWhole !== true) return damaged(bytes, "it is damaged, or of a kind that cannot be shown");
  const { width, height, mime } = header;
  if (width * height > pixelsLimit)
    return unfit(`it has ${width} × ${height} pixels, more than the limit of ${pixelsLimit}`);
  const isSmall = Math.max(width, height) <= imageSideLimit && bytes.length <= imageLimitBytes;
  if (isSmall && supportedTypes.has(mime) && header.isFlawed !== true)
    return { outcome: "fits", mime, bytes, note: "" };
  return scale(bytes, header, signal);
}

function unfit(reason: string): FittedImage {
  return { outcome: "unfit", reason: `${reason}.`, isDamaged: false };
}

function damaged(bytes: Buffer, reason: string): FittedImage {
  const isLarge = bytes.length > imageLimitBytes;
  const why = isLarge ? `it has ${bytes.length} bytes and cannot be made smaller: ${reason}` : reason;
  return { outcome: "unfit", reason: `${why}.`, isDamaged: !isLarge };
}

async function scale(bytes: Buffer, header: ImageHeader, signal?: AbortSignal): Promise<FittedImage> {
  const task = { bytes, mime: header.mime, sideLimit: imageSideLimit, bytesLimit: imageLimitBytes };
  const worker = new Worker(workerProgram, { workerData: task, stdout: true, stderr: true });
  try {
    const answered = once(worker, "message", signal ? { signal } : {}).then(([value]) =>
      answerSchema.parse(value),
    );
    const answer = await orAfter(answered, timeLimitMs, "late" as const);
    if (answer === "late") return unfit(`it could not be made smaller within ${timeLimitMs / 1000} seconds`);
    if (answer === undefined) return unfit("it could not be made small enough");
    return {
      outcome: "fits",
      mime: answer.mime,
      bytes: Buffer.from(answer.bytes),
      note: describeScaling(header, answer),
    };
  } catch (error) {
    signal?.throwIfAborted();
    return damaged(bytes, `it is damaged and cannot be decoded (${messageOf(error)})`);
  } finally {
    await worker.terminate();
  }
}

function describeScaling(
  before: ImageHeader,
  after: { width: number; height: number; mime: string },
): string {
  const size = `${after.width} × ${after.height} pixels`;
  if (before.width === after.width && before.height === after.height) return `converted to ${after.mime}`;
  return `scaled down from ${before.width} × ${before.height} to ${size}`;
}

const answerSchema = z
  .object({
    bytes: z.instanceof(Uint8Array),
    mime: z.string(),
    width: z.number(),
    height: z.number(),
  })
  .optional();

/** Next to this file, in the sources and in the bundle. */
const workerProgram = new URL(
  import.meta.url.endsWith(".ts") ? "./image-worker.ts" : "./image-worker.cjs",
  import.meta.url,
);
