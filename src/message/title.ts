import { removeControls } from "../base/text/controls.ts";

/** In characters, for fallback and generated titles. */
const longestTitle = 50;

/** Creates a title from the first words of the first message. */
export function fallbackTitle(text: string): string {
  return shortenTitle(text) || "New session";
}

/** Returns one line without control characters, cut to the longest title. */
export function shortenTitle(text: string): string {
  const line = removeControls(text.replace(/\s/g, " ")).replace(/ +/g, " ").trim();
  const characters = Array.from(line);
  return characters.length <= longestTitle
    ? line
    : `${characters
        .slice(0, longestTitle - 1)
        .join("")
        .trimEnd()}…`;
}
