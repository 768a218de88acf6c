import { readFileSync, watch } from "node:fs";
import { dirname } from "node:path";
import { Bell } from "./waiting.ts";

/** Resolves when the file is there and its text is as wanted; its folder is watched, nothing polled. */
export async function fileThat(
  path: string,
  isWanted: (text: string) => boolean = () => true,
): Promise<void> {
  const bell = new Bell();
  const watcher = watch(dirname(path), () => bell.ring());
  const look = () => {
    const text = textOf(path);
    return (text !== undefined && isWanted(text)) || undefined;
  };
  try {
    await bell.until(look, `${path} to be as wanted`);
  } finally {
    watcher.close();
  }
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
