import { sha256 } from "../base/text/hash.ts";

/** Returns the id of the project with this root folder. Its sessions are stored under it. */
export function projectIdOf(root: string): string {
  return `prj${sha256(root).slice(0, 24)}`;
}
