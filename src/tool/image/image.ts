import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { z } from "zod";
import { orAfter } from "../../base/async.ts";
import { messageOf } from "../../base/errors.ts";
import { type ImageHeader, readImageHeader } from "./image-header.ts";

/** An image that providers take, or in words why there is none. */
export type FittedImage =
  | {
      outcome: "fits";
      mime: string;
      bytes: Buffer;
      /** What was done to it, for whoever has to know that it is not the original; empty where nothing was. */
      note: string;
    }
  | { outcome: "unfit"; reason: string; isDamaged: boolean };

/** Longer sides are scaled down by providers anyway, and some refuse them beside other images. */
export const imageSideLimit = 2_000;
/** In base64, as it is sent, this comes to less than the 5 MB that providers take. */
export const imageLimitBytes = 3.5 * 1024 * 1024;
/** Larger files are not looked at, and images of more pixels not unpacked: at 4 bytes each they fill the memory. */
export const imageFileLimitBytes = 32 * 1024 * 1024;
const pixelsLimit = 40_000_000;
const timeLimitMs = 20_000;

/** What providers take as it is; other types are packed anew. */
const supportedTypes: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/**
 * Makes an image fit for a model: one that is whole and within the limits stays as it is, a larger one is scaled down
 * in a thread of its own. The type is told by the bytes, whatever somebody called them.
 */
export async function fitImage(bytes: Buffer, signal?: AbortSignal): Promise<FittedImage> {
  if (bytes.length > imageFileLimitBytes)
    return unfit(`it has ${bytes.length} bytes; up to ${imageFileLimitBytes} are looked at`);
  const header = readImageHeader(bytes);
  if (header?.isWhole !== true) return damaged(bytes, "it is damaged, or of a kind that cannot be shown");
  const { width, height, mime } = header;
  if (width * height > pixelsLimit)
    return unfit(`it has ${width} × ${height} pixels, more than the ${pixelsLimit} that are unpacked`);
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
    return damaged(bytes, `it is damaged and cannot be unpacked (${messageOf(error)})`);
  } finally {
    await worker.terminate();
  }
}

function describeScaling(
  before: ImageHeader,
  after: { width: number; height: number; mime: string },
): string {
  const size = `${after.width} × ${after.height} pixels`;
  if (before.width === after.width && before.height === after.height) return `packed anew as ${after.mime}`;
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

/** Beside this file, as it is written or as it is bundled. */
const workerProgram = new URL(
  import.meta.url.endsWith(".ts") ? "./image-worker.ts" : "./image-worker.cjs",
  import.meta.url,
);
