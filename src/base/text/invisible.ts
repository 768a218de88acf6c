/**
 * Whether the text has control characters other than tab and line feed, marks that change the writing direction, or
 * characters without width or glyph. Accepts the joiner and the variation selector inside an emoji.
 */
export function hasInvisible(text: string): boolean {
  const rest = text.replace(emojiParts, "");
  return hiddenClasses.test(rest) || Array.from(rest).some(isBlankCharacter);
}

/** Escapes each invisible character as `\u{202e}`, so that the user sees it. */
export function showInvisible(text: string): string {
  if (!hasInvisible(text)) return text;
  return Array.from(text, (character) =>
    hiddenClasses.test(character) || isBlankCharacter(character) ? escapeCharacter(character) : character,
  ).join("");
}

const emojiParts =
  /(?<=\p{Extended_Pictographic}\p{Emoji_Modifier}?)[\u{FE0F}]|(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\u{FE0F}])\u{200D}(?=\p{Extended_Pictographic})/gu;

const hiddenClasses = /[^\P{Cc}\t\n]|\p{Cf}|\p{Cs}|\p{Zl}|\p{Zp}/u;

/** Ranges of characters that are drawn as nothing although their class does not show it. */
const blankRanges: readonly (readonly [number, number])[] = [
  [0x115f, 0x1160],
  [0x180b, 0x180f],
  [0x2800, 0x2800],
  [0x3164, 0x3164],
  [0xfe00, 0xfe0f],
  [0xffa0, 0xffa0],
  [0xe0000, 0xe0fff],
];

function isBlankCharacter(character: string): boolean {
  const code = getCodePoint(character);
  return code > 0x115e && blankRanges.some(([first, last]) => code >= first && code <= last);
}

function escapeCharacter(character: string): string {
  return `\\u{${getCodePoint(character).toString(16)}}`;
}

function getCodePoint(character: string): number {
  return character.codePointAt(0) ?? 0;
}
