import { createHash } from "node:crypto";

/** The id of the project with this root folder, under which its sessions are stored. */
export function projectIdOf(root: string): string {
  return `prj${createHash("sha256").update(root).digest("hex").slice(0, 24)}`;
}
