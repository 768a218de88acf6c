import type { Attachment } from "../../message/part.ts";
import { detectImageType } from "./image-type.ts";

/** Bytes from a file, a user, a page or a server, with their declared type. */
export interface Medium {
  readonly bytes: Buffer;
  readonly mime: string;
  readonly name?: string | undefined;
}

/** An attachment for a message. An unfit one would make the provider refuse the whole conversation. */
export type FittedMedium =
  | {
      outcome: "fits";
      attachment: Attachment;
      /** Describes changes to the original; empty if there are none. */
      note: string;
    }
  | {
      outcome: "unfit";
      /** A sentence that continues "it is left out: ". */
      reason: string;
      /** Whether the content is at fault, not the size or the type. */
      isDamaged: boolean;
    };

/** Limit for a PDF or a recording. Images may be larger, because they are scaled down. */
export const mediaLimitBytes = 5 * 1024 * 1024;

/** PDF readers search this far from each end for the marks (ISO 32000, implementation notes 13 and 18). */
const pdfMarginBytes = 1_024;
const audioTypes: ReadonlySet<string> = new Set(["audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3"]);

/** Detects the media type by the first bytes; undefined unless it is an image or a PDF. */
export function detectMediaType(head: Buffer): string | undefined {
  return detectImageType(head) ?? (head.toString("latin1", 0, 5) === "%PDF-" ? "application/pdf" : undefined);
}

/** Checks an image, a PDF or a recording, and scales a large image down. Does not check what the model accepts. */
export async function fitMedium(medium: Medium, signal?: AbortSignal): Promise<FittedMedium> {
  const { bytes, mime } = medium;
  if (mime === "image/svg+xml") return unfit("SVG is text: attach it as a file");
  if (mime.startsWith("image/") || detectImageType(bytes) !== undefined) return fitPicture(medium, signal);
  if (mime !== "application/pdf" && !audioTypes.has(mime))
    return unfit(`no model takes ${mime || "this type"}`);
  if (bytes.length > mediaLimitBytes) return unfit(tooLarge(bytes.length));
  if (mime === "application/pdf" && !isWholePdf(bytes))
    return unfit("it is damaged, or no PDF: its beginning or its end is missing", true);
  return { outcome: "fits", attachment: toAttachment(medium), note: "" };
}

export function toAttachment({ bytes, mime, name }: Medium): Attachment {
  const url = `data:${mime};base64,${bytes.toString("base64")}`;
  return { mime, url, ...(name !== undefined && { filename: name }) };
}

async function fitPicture({ bytes, name }: Medium, signal?: AbortSignal): Promise<FittedMedium> {
  const { fitImage } = await import("./image.ts");
  const fitted = await fitImage(bytes, signal);
  if (fitted.outcome === "unfit")
    return { outcome: "unfit", reason: fitted.reason, isDamaged: fitted.isDamaged };
  return { outcome: "fits", attachment: toAttachment({ ...fitted, name }), note: fitted.note };
}

function unfit(reason: string, isDamaged = false): FittedMedium {
  return { outcome: "unfit", reason: `${reason}.`, isDamaged };
}

function tooLarge(bytes: number): string {
  return `it has ${bytes} bytes, more than the ${mediaLimitBytes / 1024 / 1024} MiB that can be attached`;
}

function isWholePdf(bytes: Buffer): boolean {
  return bytes.subarray(0, pdfMarginBytes).includes("%PDF-") && bytes.lastIndexOf("%%EOF") !== -1;
}
