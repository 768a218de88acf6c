import { stripVTControlCharacters } from "node:util";

/** Control characters but tab and line feed, and the signs that turn the direction of what follows. */
const controls = /[^\P{Cc}\t\n]|[\u{202a}-\u{202e}\u{2066}-\u{2069}]/u;
const allControls = new RegExp(controls, "gu");

/** The text without anything that a terminal would obey or that turns its writing around. Line feeds and tabs stay. */
export function withoutControls(text: string): string {
  return controls.test(text) ? stripVTControlCharacters(text).replaceAll(allControls, "") : text;
}
