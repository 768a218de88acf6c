import { parentPort, workerData } from "node:worker_threads";
import { PhotonImage, resize, SamplingFilter } from "@silvia-odwyer/photon-node";
import { z } from "zod";

/** Input of the thread: the image and the limits it must fit into. */
const taskSchema = z.object({
  bytes: z.instanceof(Uint8Array),
  mime: z.string(),
  sideLimit: z.number(),
  bytesLimit: z.number(),
});

const jpegQuality = 85;
/** Factor for the sides after each attempt that is still too large. */
const shrinking = 0.7;
const triesLimit = 6;

/** Decodes, scales and encodes the image. A damaged image ends the thread with an error. */
function fit({ bytes, mime, sideLimit, bytesLimit }: z.infer<typeof taskSchema>) {
  const image = PhotonImage.new_from_byteslice(bytes);
  const [width, height] = [image.get_width(), image.get_height()];
  let scale = Math.min(1, sideLimit / Math.max(width, height));
  for (let tries = 0; tries < triesLimit; tries++, scale *= shrinking) {
    const scaled = scaleTo(image, width * scale, height * scale);
    const packed = pack(scaled, mime, bytesLimit);
    if (packed.bytes.length <= bytesLimit)
      return { ...packed, width: scaled.get_width(), height: scaled.get_height() };
  }
  return undefined;
}

function scaleTo(image: PhotonImage, width: number, height: number): PhotonImage {
  const [across, down] = [Math.max(1, Math.round(width)), Math.max(1, Math.round(height))];
  if (across === image.get_width() && down === image.get_height()) return image;
  return resize(image, across, down, SamplingFilter.Triangle);
}

/** Prefers PNG, which preserves sharp edges and transparency, if the result is small enough. */
function pack(image: PhotonImage, mime: string, bytesLimit: number) {
  if (mime !== "image/jpeg") {
    const bytes = image.get_bytes();
    if (bytes.length <= bytesLimit) return { mime: "image/png", bytes };
  }
  return { mime: "image/jpeg", bytes: image.get_bytes_jpeg(jpegQuality) };
}

parentPort?.postMessage(fit(taskSchema.parse(workerData)), []);
