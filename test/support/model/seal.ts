import { createHash } from "node:crypto";

/** The seal under a vendor's own matter, by which it sees whether somebody changed it. */
export const createSeal = (text: string): string =>
  createHash("sha256").update(`sealed by the vendor: ${text}`).digest("base64");

/** Thoughts that only the vendor reads. */
export const encrypt = (text: string): string =>
  `enc.${Buffer.from(text).toString("base64")}.${createSeal(text)}`;

export function isEncrypted(text: unknown): boolean {
  if (typeof text !== "string") return false;
  const [, base64 = ""] = text.split(".");
  return text === encrypt(Buffer.from(base64, "base64").toString());
}
