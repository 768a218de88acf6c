import { createHash } from "node:crypto";

/** A checksum of a vendor's own data, to detect changes. */
export const createSeal = (text: string): string =>
  createHash("sha256").update(`sealed by the vendor: ${text}`).digest("base64");

/** Thoughts that only their vendor can read. */
export const encrypt = (text: string): string =>
  `enc.${Buffer.from(text).toString("base64")}.${createSeal(text)}`;

export function isEncrypted(text: unknown): boolean {
  if (typeof text !== "string") return false;
  const [, base64 = ""] = text.split(".");
  return text === encrypt(Buffer.from(base64, "base64").toString());
}
