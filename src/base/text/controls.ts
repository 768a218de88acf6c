/** Control characters but tab and line feed, and the signs that turn the direction of what follows. */
const controls = /[^\P{Cc}\t\n]|[\u{202a}-\u{202e}\u{2066}-\u{2069}]/u;
const allControls = new RegExp(controls, "gu");

/**
 * Colours, cursor movements, titles and hyperlinks of terminals: CSI, OSC, DCS and its kin, then two-byte ones. None
 * reaches over the beginning of the next, so that a text of beginnings without an end costs what its length costs;
 * Node's own expression looks for each end in all that follows.
 */
const escapes =
  // oxlint-disable-next-line no-control-regex -- control characters are what this looks for
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b\n]*(?:\x1b\\)?|\x1b[ -/]*[0-OQ-WYZ\\`-~]/g;

/** The text without anything that a terminal would obey or that turns its writing around. Line feeds and tabs stay. */
export function withoutControls(text: string): string {
  return controls.test(text) ? withoutEscapes(text).replaceAll(allControls, "") : text;
}

/** The text without a terminal's escape sequences; single control characters stay. */
export function withoutEscapes(text: string): string {
  return text.replaceAll(escapes, "");
}

/** White space, control characters and characters that show nothing, such as zero-width spaces. */
const visible = /[^\s\p{Cc}\p{Default_Ignorable_Code_Point}]/u;

/** Whether a reader would see anything of the text. */
export function hasVisibleText(text: string): boolean {
  return visible.test(text);
}
