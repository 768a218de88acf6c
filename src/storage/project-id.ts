import { createHash } from "node:crypto";

/** Returns the id of the project with this root folder. Its sessions are stored under it. */
export function projectIdOf(root: string): string {
  return `prj${createHash("sha256").update(root).digest("hex").slice(0, 24)}`;
}
