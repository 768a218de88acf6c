/** Control characters except tab and line feed, and the characters that change the text direction. */
const controls = /[^\P{Cc}\t\n]|[\u{202a}-\u{202e}\u{2066}-\u{2069}]/u;
const allControls = new RegExp(controls, "gu");

/**
 * Terminal escape sequences (colors, cursor movements, titles, hyperlinks): CSI, OSC, DCS and similar, then
 * two-byte ones. No match extends past the start of the next sequence, so unterminated sequences cost linear time;
 * Node's own expression scans to the end for each of them.
 */
const escapes =
  // oxlint-disable-next-line no-control-regex -- control characters are what this looks for
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b\n]*(?:\x1b\\)?|\x1b[ -/]*[0-OQ-WYZ\\`-~]/g;

/**
 * Removes everything that a terminal would interpret or that changes the text direction. Line feeds and tabs stay.
 */
export function removeControls(text: string): string {
  return controls.test(text) ? removeEscapes(text).replaceAll(allControls, "") : text;
}

/** Removes terminal escape sequences; single control characters stay. */
export function removeEscapes(text: string): string {
  return text.replaceAll(escapes, "");
}

/** Matches any character except white space, control characters and invisible ones such as zero-width spaces. */
const visible = /[^\s\p{Cc}\p{Default_Ignorable_Code_Point}]/u;

/** True when the text has a visible character. */
export function hasVisibleText(text: string): boolean {
  return visible.test(text);
}
