import type { Hash } from "node:crypto";

/** Loads Node's crypto when first used: it takes milliseconds, and a list of sessions does not need it. */
const crypto = () => process.getBuiltinModule("node:crypto");

/** SHA-256 in hex. */
export function sha256(content: string | Uint8Array): string {
  return createSha256().update(content).digest("hex");
}

/** Hashes content that arrives in chunks. */
export function createSha256(): Hash {
  return crypto().createHash("sha256");
}

export function randomUuid(): string {
  return crypto().randomUUID();
}
