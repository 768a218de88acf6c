import { readFileSync, watch } from "node:fs";
import { dirname } from "node:path";
import { Bell } from "./waiting.ts";

/** Resolves when the file exists and its text matches. Watches the folder instead of polling. */
export async function waitForFile(
  path: string,
  isWanted: (text: string) => boolean = () => true,
): Promise<void> {
  const bell = new Bell();
  const watcher = watch(dirname(path), () => bell.ring());
  const check = () => {
    const text = readIfExists(path);
    return (text !== undefined && isWanted(text)) || undefined;
  };
  try {
    await bell.until(check, `${path} to be as wanted`);
  } finally {
    watcher.close();
  }
}

function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
